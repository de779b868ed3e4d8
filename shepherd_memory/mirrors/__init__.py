"""Mirrors: folders of files that agree with the memory, and can be kept in step with it."""
