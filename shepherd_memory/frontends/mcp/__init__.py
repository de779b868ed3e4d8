"""The door for other people's agents: the memory tools over the Model Context Protocol."""
