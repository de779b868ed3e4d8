"""What every HTTP server of ours has: authentication, limits, errors, health."""
