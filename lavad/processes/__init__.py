"""The processes beside the master. Scheduler and query process apply committed events; the writer of lsb.events and the sender of
traces read the event table.

May import replica, queries, sched, lsb, store and core. The master starts each by its name (``replica.spawn``).
"""
