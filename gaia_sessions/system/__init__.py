"""What the machine says: processes, users, the project's folders, mounts, streams.

Owns every question to the operating system that is not about a store. Must never know what a session is, but for the
facts about processes that a run keeps.
"""
