"""Phase 2: one memory of many conversations, in files that a person can read."""
