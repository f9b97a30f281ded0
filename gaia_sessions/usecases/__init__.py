"""What people ask for: create, update, list, resume, clean up, reconcile, import.

One module for each. Must never know who asks (shell, Python, hook) nor how the result is shown.
"""
