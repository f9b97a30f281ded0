"""What people see: text and tables made of values.

Owns wording, columns and colour. Must never read a store, a clock or the environment.
"""
