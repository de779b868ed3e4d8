"""The chat in a terminal, line by line."""
