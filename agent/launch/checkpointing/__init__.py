"""Programs that write a job's checkpoints and restore them, run on its first host as its user.

Each is run by itself with one JSON object: the standard library and the starter's rooms only.
"""
