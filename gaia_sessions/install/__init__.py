"""Our entries in the settings of hosts: planned, written, checked, and taken out again.

Owns every change to a file that belongs to somebody else, with a backup of it. Must never be loaded by a hook.
"""
