"""What is wrong with the sessions of one root, and the exact command that fixes each problem.

Owns the checks, one module for each subject, and the fixes that are safe to apply.
"""
