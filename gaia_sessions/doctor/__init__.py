"""What is wrong with the sessions of one root, and the exact command that fixes it.

One module of checks per subject; ``findings`` has the form of their results. A check must never change anything.
"""
