"""Which file systems of this host other hosts may see, as /proc/self/mountinfo names their types.

Rule: only types that are known to be of one host's own disk or memory count as its own; what is not known may be shared.
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple

_DISKS = "bcachefs btrfs exfat ext2 ext3 ext4 f2fs fuseblk iso9660 jfs msdos nilfs2 ntfs ntfs3 reiserfs squashfs udf vfat xfs zfs"
_MADE = "aufs overlay ramfs rootfs tmpfs"
_KERNEL = (
    "binfmt_misc bpf cgroup cgroup2 configfs debugfs devpts devtmpfs efivarfs fuse.lxcfs fusectl hugetlbfs mqueue nsfs proc"
    " pstore rpc_pipefs securityfs selinuxfs sysfs tracefs"
)
OWN = frozenset(f"{_DISKS} {_MADE} {_KERNEL}".split(" "))
"""Types of file systems that no other host sees, the kernel's own among them."""
MOST = 256
_ESCAPED = re.compile(r"\\([0-7]{3})")


class Mount(NamedTuple):
    """Where a file system is mounted, whether other hosts may see it, and from where it comes (``server:/export``)."""

    path: str
    shared: bool
    source: str = ""


def read() -> list[Mount]:
    """Those of this process; [] where they cannot be read."""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as f:
            return parse(f.read())
    except OSError:
        return []


def parse(mountinfo: str) -> list[Mount]:
    """In the order of their paths; of two on one folder the later one, which hides the other."""
    found: dict[str, Mount] = {}
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        words, kind = before.split(" "), after.split(" ")
        if len(words) > 4 and len(kind) > 1:
            path = _plain(words[4])
            found[path] = Mount(path, kind[0] not in OWN, _plain(kind[1]))
    return [found[path] for path in sorted(found)]


def that_matter(mounts: list[Mount]) -> list[Mount]:
    """The root, file systems that other hosts may see, and this host's own below those: enough to judge any path.

    A mount that is like the one above it says nothing more, unless they are of two servers: an automounter's folder stands for
    all that is mounted in it.
    """
    kept: list[Mount] = []
    for mount in mounts:
        above = mount_of(kept, mount.path)
        elsewhere = above is not None and mount.shared and server_of(above) not in ("", server_of(mount))
        if above is None or mount.shared is not above.shared or elsewhere:
            kept.append(mount if mount.shared else mount._replace(source=""))
    return kept[:MOST]


def mount_of(mounts: list[Mount], path: str) -> Mount | None:
    """The one that an absolute path without links lies on."""
    around = [mount for mount in mounts if is_below(path, mount.path)]
    return max(around, key=lambda mount: len(mount.path), default=None)


def others_may_see(path: str) -> bool:
    """Whether other hosts may see what this path leads to."""
    mount = mount_of(read(), os.path.realpath(path))
    return mount is None or mount.shared


def server_of(mount: Mount) -> str:
    """The host that a network file system comes from, "" where its source names none."""
    server, colon, _ = mount.source.partition(":")
    return server if colon else ""


def is_below(path: str, folder: str) -> bool:
    """Whether a path is the folder or in it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _plain(text: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 8)), text)
