"""Programs that write a job's checkpoints and restore them, run on its first host as its user.

Each is run by itself with one JSON object. May import the starter's rooms, and of proto what imports the standard library only.
"""
