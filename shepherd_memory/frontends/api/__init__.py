"""The API server: other people's chats, with memory around them, and the memory itself over HTTP."""
