"""Acceptance of plans: every proposal is re-checked with the scheduler's own rules. May import decide.base."""
