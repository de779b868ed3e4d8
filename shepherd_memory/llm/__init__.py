"""The client for language models: HTTP, wire formats, errors."""
