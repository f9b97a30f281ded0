"""What a person sees: text and tables, made from values."""
