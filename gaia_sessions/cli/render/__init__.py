"""What a person sees: text and tables, made from values.

Owns wording, columns and colour.
"""
