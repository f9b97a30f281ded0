"""What is wrong with the sessions of one root, and the exact command that fixes it."""
