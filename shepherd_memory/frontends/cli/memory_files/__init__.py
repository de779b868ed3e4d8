"""`shepherd memory files`: what was consolidated, as files."""
