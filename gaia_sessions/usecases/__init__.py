"""What people ask for: create, update, list, resume, clean up, reconcile, import.

One module for each.
"""
