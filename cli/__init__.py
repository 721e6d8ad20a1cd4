"""The commands: one file for each command that does something. Thin: arguments, one ask, print. May import proto and config.

Rooms from the bottom: client, options, then submit and control, terminal, jobs, local. On the local socket a command imports
the
standard library only: what it imports is what a user waits for.
"""
