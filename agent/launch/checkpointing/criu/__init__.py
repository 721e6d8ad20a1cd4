"""Method ``criu``: CRIU (4.0 and later) dumps the process tree of a job on one host and restores it, there or elsewhere.

The job runs in user, pid and mount namespaces of its own from its start. In its user namespace its user has every capability, and
outside none: so CRIU needs no privilege, an image can give nobody more rights than its owner has, and pids are free at a restore.
"""
