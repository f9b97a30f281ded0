"""What is wrong with the sessions of one root, and the command that fixes each problem."""
