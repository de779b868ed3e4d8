"""Terminal output, signals, and what every program on a terminal shares."""
