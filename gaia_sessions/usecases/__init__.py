"""What people, agents and cron ask for: create, update, list, resume, clean up, reconcile, import.

One module for each. Must never know how it was asked (shell, Python, hook) nor how the answer is shown.
"""
