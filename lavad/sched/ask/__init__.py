"""Questions about the future: when a job may start, and what would start it now. May import cycle and below."""
