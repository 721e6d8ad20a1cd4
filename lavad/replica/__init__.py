"""Replication: the frames that carry committed events, the inside of a replica process, the master's side of it.

May import engine, store, sched and core.
"""
