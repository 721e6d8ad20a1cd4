"""Listings of hosts and reservations: bhosts, lshosts, lsload, brsvs and their kin. May import explain and below."""
