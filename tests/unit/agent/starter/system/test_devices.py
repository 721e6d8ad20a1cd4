"""Device files that a group's processes may open, by both versions of cgroups, with files of the kernel's memory devices.

/dev/null, zero, full and random are 3, 5, 7 and 8 of major number 1, and stand here for GPUs.
"""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.starter.protocol.part import CgroupLimits, DeviceRule
from agent.starter.system import cgroup, devices
from agent.starter.system.cgroup import Groups, Places, Removals

NUMBERS = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "tty": (5, 0)}
TRY = """
import os, sys
os.read(0, 1)
for path in sys.argv[1:]:
    try:
        os.close(os.open(path, os.O_RDONLY))
        print(os.path.basename(path), "opens")
    except OSError as e:
        print(os.path.basename(path), e.strerror)
"""

JOIN = """
import sys
with open(sys.argv.pop(1) + "/cgroup.procs", "w") as file:
    file.write("0")
"""


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    for name, (major, minor) in NUMBERS.items():
        os.mknod(tmp_path / name, 0o666 | stat.S_IFCHR, os.makedev(major, minor))
    return [str(tmp_path / name) for name in ("null", "zero", "full", "random")]


def opened(files: list[str], places: Places, *rules: DeviceRule) -> list[str]:
    """What a process says that is in the group of a part with these rules; then the group is gone."""
    with subprocess.Popen([sys.executable, "-ISc", TRY, *files], stdin=-1, stdout=-1, text=True) as process:
        groups = Groups(places, 1, Removals())
        groups.take(process.pid)
        groups.begin(f"test-{os.getpid()}", CgroupLimits(devices=rules))
        out, _ = process.communicate("x")
        groups.discard()
    left = Path(places.folders["devices"]) / f"lava-test-{os.getpid()}"
    assert not left.exists()
    return [line.partition(" ")[2] for line in out.splitlines()]


@pytest.fixture(params=[1, 2])
def places(request: pytest.FixtureRequest) -> Iterator[Places]:
    """A place for groups of version 1, and of 2."""
    if os.geteuid() != 0:
        pytest.skip("needs root to make cgroups and device files")
    own = cgroup.own_paths()
    for point, options in cgroup.mounts("cgroup" if request.param == 1 else "cgroup2"):
        if request.param == 1 and "devices" not in options.split(","):
            continue
        if request.param == 2 and not devices.can_attach():
            pytest.skip("this kernel takes no BPF program for devices")
        folder = point + own.get("devices" if request.param == 1 else "", "/").rstrip("/")
        yield Places({"devices": folder}, request.param == 2)
        return
    pytest.skip(f"no cgroup of version {request.param} for devices can be had here")


def test_of_a_major_number_only_some_devices_open(places: Places, files: list[str]) -> None:
    """A rule's own, and from ``below`` on all; a second rule is about another major number."""
    no, yes = "Operation not permitted", "opens"
    assert opened(files, places, DeviceRule(1, (5,), 8)) == [no, yes, no, yes]
    assert opened(files, places, DeviceRule(1, (), 8)) == [no, no, no, yes]
    assert opened(files, places, DeviceRule(195, (1,), 254), DeviceRule(1, (3, 7), 20)) == [yes, no, yes, no]
    assert opened(files, places, DeviceRule(195, (0, 3), 254), DeviceRule(5, (), 9)) == [yes] * 4
    assert opened([files[0].replace("null", "tty"), files[0]], places, DeviceRule(5, (), 1)) == [no, yes]


@pytest.mark.parametrize("places", [2], indirect=True)
def test_of_version_2_no_process_is_moved_for_rules_that_come_and_go(places: Places, files: list[str]) -> None:
    """A move stops all forks of the machine for a moment. The next part of the shepherd has rules of its own, or none."""

    def opens() -> list[str]:
        done = subprocess.run(
            [sys.executable, "-ISc", JOIN + TRY, groups.home, *files], input="x", capture_output=True, text=True
        )
        return [line.partition(" ")[2] for line in done.stdout.splitlines()]

    no, yes = "Operation not permitted", "opens"
    with subprocess.Popen(["/bin/sleep", "1000"]) as shepherd:
        groups = Groups(places, 2, Removals())
        try:
            groups.take(shepherd.pid)
            where, wrote = Path(f"/proc/{shepherd.pid}/cgroup").read_text(), len(os.listdir("/proc/self/fd"))
            for rules, expected in (
                ((DeviceRule(1, (), 8),), [no, no, no, yes]),
                ((DeviceRule(1, (3, 7), 20),), [yes, no, yes, no]),
                ((), [yes] * 4),
            ):
                groups.begin(f"test-{os.getpid()}", CgroupLimits(devices=rules))
                assert opens() == expected
                assert Path(f"/proc/{shepherd.pid}/cgroup").read_text() == where
                groups.end()
            assert opens() == [yes] * 4
            assert len(os.listdir("/proc/self/fd")) == wrote
        finally:
            shepherd.kill()
    groups.discard()
    assert not Path(groups.home).exists()


def test_the_lines_of_version_1_name_each_file() -> None:
    assert devices.lines([DeviceRule(195, (1,), 3)]) == ["c 195:0 rwm", "c 195:2 rwm"]
