"""Interactive jobs and remote tasks, seen from the user's terminal. May import submit and below."""
