"""The agent's end of the starter's socket: orders gathered over a turn. May import launch and below."""
