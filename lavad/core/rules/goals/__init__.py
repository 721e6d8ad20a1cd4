"""Service classes with goals in time: how many of their jobs should run at once, and whether they reach their goals."""
