"""Listings for administrators: badmin's history and status, lsacct. May import jobs and below."""
