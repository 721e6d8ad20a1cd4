"""The site's own programs that its configuration asks, and who may write such programs. Imports nothing of lava."""
