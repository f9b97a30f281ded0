"""The only JSON of records and payloads: read strictly, written in one form.

Owns which JSON is accepted (``strict``) and a faster way to the same result (``fast``).
"""
