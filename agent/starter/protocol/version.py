"""Which version of these records a starter or an agent speaks. A starter outlives its agent, and works with the next one's."""

PROTOCOL = 2
"""Raised with each release in which an order, a report or a part changed.

1 names no version, has a network each for ranks and for blaunch, and forgets templates after each order.
"""
OLDEST = 1
"""The oldest starter that an agent works with: that of the release before."""
