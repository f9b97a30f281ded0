"""The command line: a command parses its arguments, makes one call and prints one view. Only here click is imported."""
