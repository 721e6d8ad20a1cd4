"""Advance reservations: brsvadd, brsvmod, brsvdel. May import decide.base."""
