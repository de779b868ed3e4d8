"""Session logs that coding agents leave on disk: read, kept, and grouped into conversations."""
