"""Work that is done later: jobs of every kind, their states, lanes of threads that do them, what it cost."""
