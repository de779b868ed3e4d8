"""Conversations: stretches of a chat or a transcript without a long gap, and what becomes of each."""
