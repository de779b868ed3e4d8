"""The MCP server: the memory tools for agents, over the Model Context Protocol."""
