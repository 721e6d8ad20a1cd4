"""One process of a part: its description, start, signals, accounting. May import system and protocol."""
