"""The cluster's live records in tables, the indexes derived from them, and the invariants of both.

May import site and below.
"""
