"""Policies beyond giving out free slots: preemption, reservation, backfill, suspension, growth.

May import line, hosts and below.
"""
