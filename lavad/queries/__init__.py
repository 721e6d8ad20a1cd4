"""The text of every command that only shows, rendered where the data is.

Rooms from the bottom: frame, facts, explain, then jobs, hosts and queues beside each other, admin, records, render and cost.

May import lsb, store, sched, core.
"""
