"""Guaranteed resource pools and the service classes that they are guaranteed to."""
