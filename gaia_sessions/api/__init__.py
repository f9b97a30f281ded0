"""What people ask for. Programs call ``Sessions``; commands and hooks call the functions of the modules."""
