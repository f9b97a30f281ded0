"""The pure domain: what a session, a run and a phase are, and every rule about them.

Owns the record, its schema, the phases, the resume policy and what each event does to a record. Must never touch a
file, a process, the environment or a clock: ``now`` is an argument.
"""
