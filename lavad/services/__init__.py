"""Services of the master beside the engine: periodic decisions, store lookups, metrics, waiting callers.

May import hosts, engine and below.
"""
