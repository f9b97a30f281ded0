"""Where records are stored: the port, the file store, and the store in memory that it is compared with.

``atomic`` is the only code that writes a file, ``locks`` the only code that locks. Must never know a rule of the
domain: rules come in as functions, records go out as they were stored.
"""
