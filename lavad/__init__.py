"""The master daemon: one writer holds the truth about the cluster (engine.py), replicas schedule and answer queries.

May import proto and config. Inside, imports go down only: main, office, master, rpc, services, hosts, database, replay, processes
and devtools, replica, engine and configure, committed and requests, queries, lsb, store, sched and wire beside small modules,
core (pyproject.toml holds the order).
"""
