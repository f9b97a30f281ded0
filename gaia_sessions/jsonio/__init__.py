"""Reads and writes the JSON of records and payloads. ``strict`` decides what is accepted; ``fast`` is only faster."""
