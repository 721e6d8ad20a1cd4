"""Listings of jobs: bjobs, bhist, bacct and their kin, one command a file. May import explain and below."""
