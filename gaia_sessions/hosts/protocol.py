"""The hooks: host JSON in, a normal event to the lifecycle, host JSON out. Standard library only."""

PRE_DELEGATE = "pre_delegate"
SUBAGENT_STOP = "subagent_stop"
HOOK = "hook"
"""The one entry for every event of a host."""
