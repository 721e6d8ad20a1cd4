"""Listings of queues, users, limits and parameters: bqueues, busers, bparams and their kin. May import explain and below."""
