"""What a scheduling cycle reads and proposes: plan, volatile state, the record of the cycle. May import events and below."""
