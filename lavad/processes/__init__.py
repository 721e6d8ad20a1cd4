"""The processes beside the master: scheduler, query, and the writer of lsb.events. Each applies committed events.

May import replica, queries, sched, lsb, store and core; nothing imports them but the master, by name.
"""
