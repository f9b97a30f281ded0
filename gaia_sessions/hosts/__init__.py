"""What is known of each host: how its payloads are read, which replies it obeys, where its settings are.

A module or folder per host; ``registry`` lists them and ``protocol`` says what each must have. Must never read or write
a record, nor read the environment: it is handed in.
"""

PRE_DELEGATE = "pre_delegate"
SUBAGENT_STOP = "subagent_stop"
HOOK = "hook"
"""The names of the hooks. The third one takes every event of a host."""
