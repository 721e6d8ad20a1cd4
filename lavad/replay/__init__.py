"""Simulated and recorded clusters on a virtual clock: ``lava whatif`` and ``lava replay``.

May import configure, processes.site_policy, replica, store, sched and core.
"""
