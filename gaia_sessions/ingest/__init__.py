"""What hosts report, applied to the records: delegations, starts, ends, turns, the use of tools.

``dispatch`` sends each kind of event to its module; ``join`` finds the session and the run it belongs to; ``deferred``
tries again what had to wait. Must never know a host's own words, nor what people ask for (``usecases``).
"""
