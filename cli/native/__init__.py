"""Commands without the start of Python: ``front.c`` and what belongs to it are the executable, ``server.py`` the process of the
user that has the commands loaded. Both are optional (docs/native.md). May import client; the server
loads the commands by their names.
"""
