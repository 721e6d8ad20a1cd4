"""Decisions on reports of agents about attempts and tasks. May import decide.base."""
