"""The two ways in, gRPC from agents and frames on the local socket: authenticate, convert, ask, convert back.

May import services, hosts, engine and below; ``lavad.wire`` turns messages into records and back.
"""
