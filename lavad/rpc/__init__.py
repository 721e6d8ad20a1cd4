"""The two entry points, gRPC for agents and the local socket for commands: authenticate, decode, ask, encode.

May import services, hosts, engine and below; ``lavad.wire`` turns messages into records and back.
"""
