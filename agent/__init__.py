"""The daemons of a host: the agent, which obeys the master and measures, and the starter, which starts everything.

May import proto and config. Rooms from the top: parts, then master, starter_client and checkpoint, launch, monitor, core and
starter.
"""
