"""The facts that change a cluster, which of them may follow which, and ``apply``, the only code that changes it.

May import cluster and below.
"""
