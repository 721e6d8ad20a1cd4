"""Tasks that a job starts on its own hosts (blaunch). May import terminal and below."""
