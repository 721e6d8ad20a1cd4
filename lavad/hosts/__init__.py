"""The master's side of each host's stream: sessions, orders built from effects, requests for output of jobs.

May import the engine, the wire and below.
"""
