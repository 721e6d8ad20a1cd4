"""Dependency conditions: which waiting jobs may start, and bwait. May import decide.base."""
