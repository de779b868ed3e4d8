"""The CLI server: one chat of one user, shared by whoever may come in, over HTTP."""
