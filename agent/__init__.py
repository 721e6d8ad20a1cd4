"""The daemons of a host: the agent, which obeys the master and measures, and the starter, which starts everything.

May import proto and config. From the top: main, daemon and devtools, stream, parts, then master, starter_client and checkpoint,
launch, monitor, core and starter; each imports those below it only.
"""
