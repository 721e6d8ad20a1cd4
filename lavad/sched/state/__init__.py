"""What a cycle works on, and what the scheduler keeps between cycles. May import needs and order."""
