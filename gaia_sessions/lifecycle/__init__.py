"""The use cases: load, apply the rules, write. Each takes a store and ``now``; none knows who asks."""
