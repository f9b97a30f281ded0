"""One command per file; ``cli.group`` names and summarizes them without importing any."""
