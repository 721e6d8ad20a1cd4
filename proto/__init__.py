"""What daemons and commands have in common.

``agent.proto`` with its generated code, the registry of commands, the options of bsub, the forms of answers, the version; and
what several do alike: local sockets, users by name, files replaced in one move; in ``proto.daemon`` what daemons alone do.

Imports nothing of lava. What commands load of it imports the standard library only.
"""
