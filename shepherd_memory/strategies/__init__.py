"""Strategies: what code of other packages makes of conversations, found by entry point and run apart."""
