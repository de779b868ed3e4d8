"""Hooks: what an agent runs at the beginning and the end of its sessions, and before it compacts one."""
