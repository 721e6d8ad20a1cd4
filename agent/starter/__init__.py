"""The starter and its shepherds: starts every process and outlives the agent. Standard library only.

Rooms from the bottom: protocol, system, wire and process, terminal, mpi and blaunch, part, supervisor.
"""
