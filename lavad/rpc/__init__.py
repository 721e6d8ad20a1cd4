"""The two ways in, gRPC from agents and frames on the local socket: authenticate, convert, ask, convert back.

May import services, hosts, engine and below. ``convert`` alone knows both the wire's messages and the core's records.
"""
