"""The command line: each command parses its arguments, makes one call, and shows one view.

Owns everything about click, and how errors become exit codes.
"""
