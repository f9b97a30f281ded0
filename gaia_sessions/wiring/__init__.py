"""What stands in a host's settings about us, and how it gets there and away again. Standard library only.

Other people's bytes are sacred here: a text is changed by splicing, never by writing it anew. The room knows
files and hosts' settings; of sessions and records it must never know anything.
"""
