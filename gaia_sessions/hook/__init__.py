"""One call of a hook: ``run`` reads, finds the host, applies, replies and logs; ``direct`` answers users' own scripts.

A hook fails open and silent. Must never know what one host calls things, and imports no third party.
"""
