"""The master's side of each host's stream: sessions, orders built from effects, questions about a job's output.

May import the engine, the wire and below.
"""
