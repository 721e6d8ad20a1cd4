"""The master daemon: one writer holds the truth about the cluster (engine.py), replicas schedule and answer queries.

May import proto and config. Inside, imports go down only: main, office, master, rpc, services, hosts, processes, replica, engine,
queries, lsb, store, sched, core (pyproject.toml holds the order).
"""
