"""What goes into a prompt: the block at the tail of a user's message."""
