"""Policies beyond giving out free slots: preemption, slot reservation with backfill, guaranteed shares, suspension, growth.

May import line, hosts and below.
"""
