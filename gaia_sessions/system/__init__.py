"""What the machine says: processes, the project's folders, users, mounts, streams.

Owns every question to the operating system that is not about a store. Must never know what a session is, but for the
facts about processes that a run keeps.
"""
