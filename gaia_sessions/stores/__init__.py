"""Where records are kept: one port, the file store, an in-memory model of it."""
