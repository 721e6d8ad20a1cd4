"""Refuses SQLite on file systems of the network: locks may hold nobody off there, and WAL needs memory that all share."""

from __future__ import annotations

import os
from pathlib import Path

from lavad.store.errors import StoreRefused

# fmt: off
NETWORK = frozenset((
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "lustre", "ceph", "gpfs", "beegfs", "afs", "coda", "ocfs2",
    "gfs2", "panfs", "pvfs2", "orangefs", "9p", "vboxsf", "davfs", "glusterfs", "wekafs", "fuse.sshfs",
    "fuse.glusterfs", "fuse.ceph", "fuse.ceph-fuse", "fuse.s3fs", "fuse.davfs2", "fuse.gcsfuse",
    "fuse.juicefs", "fuse.rclone",
))
# fmt: on
"""Types as /proc/self/mountinfo has them."""


def check_local(path: str, refused: frozenset[str] = NETWORK) -> None:
    """Raise ``StoreRefused`` where the file would lie on a file system of the network."""
    folder = os.path.dirname(os.path.abspath(path))
    try:
        device = os.stat(path if os.path.exists(path) else folder).st_dev
        found = find_type(Path("/proc/self/mountinfo").read_text(errors="replace"), os.major(device), os.minor(device))
    except OSError:
        return  # what is wrong with the file is told when it is opened
    if found in refused:
        raise StoreRefused(
            f"store {path}: {folder} is on a file system of the network ({found}), where SQLite may lose data;"
            " set LAVA_SPOOLDIR to a local disk, or use PostgreSQL (LAVA_DATABASE_URL)"
        )


def find_type(mounts: str, major: int, minor: int) -> str:
    """The type of the file system with this device in a text of mountinfo (proc(5)); "": it is not there."""
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        words = before.split()
        if len(words) > 2 and words[2] == f"{major}:{minor}":
            return after.split(" ", 1)[0]
    return ""
