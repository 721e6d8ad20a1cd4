"""Interactive parts: the pseudo-terminal or pipes, and the endpoint where the user attaches.

May import wire, process and below.
"""
