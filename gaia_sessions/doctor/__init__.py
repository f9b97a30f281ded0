"""What is not as it should be with the sessions of one root, and the exact command that mends it."""
