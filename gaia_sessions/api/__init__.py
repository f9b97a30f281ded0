"""What programs call: ``Sessions``, the functions of the users' documents, and an agent's own session and token."""
