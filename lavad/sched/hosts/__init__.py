"""Which hosts a class gets, and how many slots of each. May import state and below."""
