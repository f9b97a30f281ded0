"""What people ask for, a module for each subject. Programs call ``Sessions``; commands and hooks call the functions."""
