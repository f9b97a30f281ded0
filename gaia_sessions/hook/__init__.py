"""One call of a hook: read, dispatch, reply, and one line in the log.

Owns the promise that a hook fails open and silent, within three seconds. Must never know what one host calls things.
"""
