"""The domain: records, runs and phases, and the rules for them.

No module here reads a file, a process, the environment or a clock: ``now`` is an argument.
"""
