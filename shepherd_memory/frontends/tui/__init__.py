"""The terminal interface: a chat that shows what it remembers, and a screen for the memory itself."""
