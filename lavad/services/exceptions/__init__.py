"""Exceptions of jobs (JOB_OVERRUN, JOB_UNDERRUN, JOB_IDLE) and of hosts (EXIT_RATE), told to the site's eadmin or by mail.

Rule: what an exception is, ``lavad.queries.facts.queuefacts`` says. Each one of an attempt is told once; the store keeps which.
"""
