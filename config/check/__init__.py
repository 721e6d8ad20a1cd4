"""What one entry says against another. May import values and below."""
