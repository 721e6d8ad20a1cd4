"""The text of every command that only shows, rendered where the data is: one command one file."""
