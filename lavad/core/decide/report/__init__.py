"""What agents say of attempts and tasks, and what follows from it. May import decide.base."""
