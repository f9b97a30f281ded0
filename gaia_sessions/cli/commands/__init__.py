"""One module per command; ``cli.group`` names and summarizes them without importing any.

A command must never import another, nor at module level what only its work needs.
"""
