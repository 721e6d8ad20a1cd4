"""The durable state, in SQLite or PostgreSQL: one writer, one transaction for a batch; readers for history. May import core."""
