"""The commands: one file for each that does something, ``listing.py`` for those that only show. Thin: arguments, one ask, print.
``proto/commands.py`` is their registry. May import proto and config.

Rooms from the bottom: client, then submit and control, terminal, jobs and live, local, native. On the local socket a command
imports the standard library only: what it imports is what a user waits for.
"""
