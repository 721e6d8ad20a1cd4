"""The order of waiting classes: queue, fair share, priority, submission. May import state and below."""
