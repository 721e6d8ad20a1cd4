"""What becomes of a plan: every proposal is checked again with the scheduler's own rules. May import decide.base."""
