"""Commands that are run as sub-agents: their processes, their output and their limits."""
