"""Which folders other hosts may see, by what /proc/self/mountinfo says."""

from __future__ import annotations

import pytest

from agent.starter.system import mounts
from agent.starter.system.mounts import Mount

TEXT = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
23 22 0:5 / /proc rw - proc proc rw
24 22 0:30 / /tmp rw - tmpfs tmpfs rw
30 22 0:40 / /home rw,relatime shared:2 - nfs4 nas:/export/home rw
31 30 8:2 / /home/my\\040disk rw - xfs /dev/sdb1 rw
32 22 0:41 / /scratch rw - lustre 10.0.0.1@o2ib:/scratch rw
33 22 8:3 / /data rw - ext4 /dev/sdc1 rw
34 33 0:42 / /data rw - beegfs beegfs_nodev rw
35 22 0:43 / /new rw - unheardfs x rw
36 24 0:44 / /tmp/x rw - ext4 /dev/sdd1 rw
"""


@pytest.mark.parametrize(
    ("path", "shared"),
    [
        ("/var/x", False),
        ("/tmp/x/y", False),
        ("/home", True),
        ("/home/alice/ckpt", True),
        ("/homes", False),
        ("/home/my disk/x", False),
        ("/scratch/x", True),
        ("/data/x", True),
        ("/new/x", True),
        ("/", False),
    ],
)
def test_a_folder_is_shared_as_the_nearest_mount_above_it_is(path: str, shared: bool) -> None:
    told = mounts.that_matter(mounts.parse(TEXT))
    for table in (told, mounts.parse(TEXT)):
        found = mounts.mount_of(table, path)
        assert found is not None
        assert found.shared is shared


def test_what_is_told_is_short() -> None:
    assert mounts.that_matter(mounts.parse(TEXT)) == [
        Mount("/", False),
        Mount("/data", True, "beegfs_nodev"),
        Mount("/home", True, "nas:/export/home"),
        Mount("/home/my disk", False),
        Mount("/new", True, "x"),
        Mount("/scratch", True, "10.0.0.1@o2ib:/scratch"),
    ]


def test_an_automounter_stands_for_what_it_has_mounted() -> None:
    above = [Mount("/", False), Mount("/home", True, "/etc/auto.home"), Mount("/nfs", True, "nas:/nfs")]
    below = [Mount(f"/home/{name}", True, f"nas:/home/{name}") for name in "abc"]
    same, other = Mount("/nfs/a", True, "nas:/a"), Mount("/nfs/b", True, "far:/b")
    assert mounts.that_matter(sorted([*above, *below, same, other])) == [*above, other]


def test_this_process_has_a_root() -> None:
    assert mounts.mount_of(mounts.read(), "/") is not None
