"""One module per command. ``cli.group`` has their names and summaries, and imports only the command that is called.

At module level, import only what every call of the command needs.
"""
