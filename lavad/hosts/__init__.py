"""The master's side of each host's stream: sessions, orders built from effects, questions about a job's output.

May import engine, queries and below; this room and rpc are the only ones that know proto.
"""
