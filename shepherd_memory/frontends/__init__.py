"""The programs through which people and machines use the memory."""
