"""How a checkpoint is asked for and found, one method a file. May import launch and below."""
