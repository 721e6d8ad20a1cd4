"""Frames and streams between agent, starter, shepherds and tasks. May import system and protocol."""
