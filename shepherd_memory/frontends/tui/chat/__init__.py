"""The chat screen: conversation, input, what waits, what was recalled, and how it all is doing."""
