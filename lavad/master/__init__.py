"""The active master: everything that serves while this lavad holds the masters' lease.

May import all of lavad but main and office.
"""
