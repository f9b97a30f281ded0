"""The command line: parse, one call, one view. The one door to click."""
