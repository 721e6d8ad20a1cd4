"""On which file systems a SQLite store may lie."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lavad.store import filesystem
from lavad.store.errors import StoreRefused

MOUNTS = """\
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
31 27 0:45 / /home rw,relatime shared:12 - nfs4 server:/home rw,vers=4.2
32 27 0:46 / /scratch/a\\040b rw shared:13 master:2 - lustre 10.0.0.1@tcp:/scratch rw
33 27 0:47 / /mnt/far rw - fuse.sshfs ann@far:/ rw
"""


@pytest.mark.parametrize(
    ("device", "kind", "refused"),
    [
        ((254, 0), "ext4", False),
        ((0, 45), "nfs4", True),
        ((0, 46), "lustre", True),
        ((0, 47), "fuse.sshfs", True),
        ((9, 9), "", False),
    ],
)
def test_the_type_of_a_device(device: tuple[int, int], kind: str, refused: bool) -> None:
    assert filesystem.find_type(MOUNTS, *device) == kind
    assert (kind in filesystem.NETWORK) is refused


def test_a_store_on_such_a_file_system_is_refused_by_name(tmp_path: Path) -> None:
    filesystem.check_local(str(tmp_path / "lavad.sqlite"))
    own = filesystem.find_type(Path("/proc/self/mountinfo").read_text(), *_device(tmp_path))
    assert own
    with pytest.raises(StoreRefused, match=rf"on a file system of the network \({own}\).*PostgreSQL"):
        filesystem.check_local(str(tmp_path / "lavad.sqlite"), frozenset({own}))


def _device(path: Path) -> tuple[int, int]:
    device = path.stat().st_dev
    return os.major(device), os.minor(device)
