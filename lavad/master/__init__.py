"""A lavad in office: what serves while it holds the masters' lease, built and wired together.

May import all of lavad but main.
"""
