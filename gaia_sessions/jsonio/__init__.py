"""The only JSON of records and payloads: ``strict`` decides what is accepted, ``fast`` is a faster way to the same
result.
"""
