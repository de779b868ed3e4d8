"""A chat with the provider in use: what the command line, the TUI and the shared session have in common."""
