"""New messages, exchanges and documents on their way into the memory."""
