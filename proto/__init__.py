"""What daemons and commands have in common.

``agent.proto`` with its generated code, the registry of commands, the options of bsub, the forms of answers, the version; and
what several of them do alike: local sockets, logs, users by name, threads for slow calls.

Imports nothing of lava. What commands load of it imports the standard library only.
"""
