"""Phases: a note of each conversation that is over, by a model, and which conversations get one."""
