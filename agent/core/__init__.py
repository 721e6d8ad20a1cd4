"""The agent's decisions about one part. Pure: no clock, file, socket or wire."""
