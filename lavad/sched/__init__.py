"""The scheduler. Pure: a snapshot of the cluster and the time give a plan. Start reading at ``cycle/cycle.py``.

Rooms from the bottom: order and needs, state, line and hosts, policy, cycle, ask; each imports those below it only.

May import core.
"""
