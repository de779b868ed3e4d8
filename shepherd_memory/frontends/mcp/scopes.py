"""For whom an agent is told of a server: one account, or everybody in a project."""

USER, PROJECT = "user", "project"
SCOPES = (USER, PROJECT)
