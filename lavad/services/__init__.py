"""What the master does by time or beside the engine: timed decisions, dependency look-ups, metrics, waiting callers.

May import hosts, engine and below.
"""
