"""Replication: the frames that carry committed events, the replica process, and the master's side of it.

May import engine, committed, store, sched and core.
"""
