"""One scheduling cycle from start to plan, and why classes wait. May import policy and below."""
