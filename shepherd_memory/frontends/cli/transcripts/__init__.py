"""The commands that import transcripts and work on them."""
