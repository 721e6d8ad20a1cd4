"""The starter itself: orders of the agent, the pool of shepherds, the journal. May import all of starter."""
