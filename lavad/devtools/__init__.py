"""For clusters on one machine, to try and to test lava: a private PostgreSQL. May import store (its errors)."""
