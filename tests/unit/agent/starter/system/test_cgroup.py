"""Groups with limits, in a tree of plain files where the kernel's is not to be had."""

from __future__ import annotations

import math
import os
import subprocess
import time
from pathlib import Path

import pytest

from agent.starter.protocol.part import CgroupLimits
from agent.starter.system import cgroup, devices
from agent.starter.system.cgroup import Groups, Places, Removals
from tests.support.daemons.unit_groups import inside, make_unit_group, remove_unit_group
from tests.support.wait import wait_until


def group(path: Path, *files: str, controllers: str = "") -> Path:
    path.mkdir(exist_ok=True)
    for name in ("cgroup.procs", "cgroup.subtree_control", *files):
        (path / name).touch()
    (path / "cgroup.controllers").write_text(controllers)
    return path


def test_of_version_2_the_services_group_gives_its_controllers_to_the_starters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Delegate=yes gives the service controllers; nobody gives them to the group that the starter moved into, but itself."""
    service = group(tmp_path / "service", controllers="cpuset cpu io memory pids\n")
    base = group(service / "lava-1", controllers="cpu memory\n")
    (base / "cgroup.procs").write_text("41\n42\n")
    group(base / "lava-starter")
    monkeypatch.setattr(devices, "can_attach", lambda: False)
    places = cgroup.unified_at(str(base))
    assert places == Places({"memory": str(base)}, True)
    # plain files keep what was written last, at their beginning
    assert (service / "cgroup.subtree_control").read_text() == "+cpuset"
    assert (base / "cgroup.subtree_control").read_text() == "+memory"
    assert (base / "lava-starter" / "cgroup.procs").read_text() == "42"
    none = "no cgroup keeps jobs' limits of CPUs, processes, device files"
    assert places.says() == f"cgroups (version 2) keep jobs' limits of memory; {none}"
    assert cgroup.NOWHERE.says() == "no cgroup keeps jobs' limits of memory, CPUs, processes, device files"
    monkeypatch.setattr(devices, "can_attach", lambda: True)
    assert cgroup.unified_at(str(base)).folders["devices"] == str(base)


def test_of_version_2_a_part_with_a_memory_limit_has_all_its_limits_in_one_group(tmp_path: Path) -> None:
    places = Places({"memory": str(tmp_path), "pids": str(tmp_path)}, True)
    home = group(tmp_path / f"lava-shepherd-{os.getpid()}-7", "pids.max")
    part = group(tmp_path / "lava-u", "pids.max", "memory.max", "memory.swap.max")
    groups = Groups(places, 7, Removals())
    assert groups.home == str(home)
    groups.take(1234)
    assert (home / "cgroup.procs").read_text() == "1234"
    groups.begin("u", CgroupLimits(memory_bytes=1 << 20, pids=10))
    read = {name: (part / name).read_text() for name in ("memory.max", "memory.swap.max", "pids.max", "cgroup.procs")}
    assert read == {"memory.max": "1048576", "memory.swap.max": "0", "pids.max": "11", "cgroup.procs": "1234"}
    (home / "cgroup.procs").write_text("")
    groups.end()
    assert (home / "cgroup.procs").read_text() == "1234"


@pytest.mark.parametrize(
    ("unified", "files", "ran_out"),
    [
        (True, {"memory.events": "low 0\nmax 7\noom 1\noom_kill 1\n"}, True),
        (True, {"memory.events": "low 0\nmax 7\noom 0\noom_kill 1\n"}, False),  # the whole host had no more
        (True, {"memory.events": "low 0\nmax 7\noom 1\noom_kill 0\n"}, False),
        (True, {}, False),
        (False, {"memory.oom_control": "under_oom 0\noom_kill 2\n", "memory.max_usage_in_bytes": "1048576\n"}, True),
        (False, {"memory.oom_control": "under_oom 0\noom_kill 2\n", "memory.max_usage_in_bytes": "500000\n"}, False),
        (False, {"memory.oom_control": "under_oom 0\n", "memory.max_usage_in_bytes": "1048576\n"}, False),
        (False, {}, False),
    ],
)
def test_whether_the_kernel_killed_for_the_memory_limit(
    tmp_path: Path, unified: bool, files: dict[str, str], ran_out: bool
) -> None:
    groups = Groups(Places({"memory": str(tmp_path)}, unified), 7, Removals())
    part = group(tmp_path / "lava-u", "memory.max", "memory.swap.max", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes")
    assert not groups.ran_out_of_memory(), "it has no group yet"
    groups.begin("u", CgroupLimits(memory_bytes=1 << 20))
    for name, text in files.items():
        (part / name).write_text(text)
    assert groups.ran_out_of_memory() is ran_out


@pytest.mark.parametrize(
    ("unified", "nodes", "wrote"), [(True, (), ""), (True, (1,), "1"), (False, (), "0-1"), (False, (1,), "1")]
)
def test_a_part_is_kept_on_its_cpus(tmp_path: Path, unified: bool, nodes: tuple[int, ...], wrote: str) -> None:
    """Of version 1 a group has memory nodes of its own before it takes a process."""
    (tmp_path / "cpuset.mems").write_text("0-1\n")
    part = group(tmp_path / "lava-u", "cpuset.cpus", "cpuset.mems")
    groups = Groups(Places({"cpuset": str(tmp_path)}, unified), 7, Removals())
    groups.take(1234)
    groups.begin("u", CgroupLimits(cpuset=(2, 3), nodes=nodes))
    read = [(part / name).read_text() for name in ("cpuset.cpus", "cpuset.mems", "cgroup.procs")]
    assert read == ["2,3", wrote, "1234"]


def test_the_limit_of_processes_is_written_when_it_changes_only(tmp_path: Path) -> None:
    home = group(tmp_path / f"lava-shepherd-{os.getpid()}-1", "pids.max")
    groups = Groups(Places({"pids": str(tmp_path)}, False), 1, Removals())
    groups.take(1234, moved=True)
    assert (home / "cgroup.procs").read_text() == ""
    wrote = []
    for pids in (10, 10, 0):
        groups.begin("u", CgroupLimits(pids=pids))
        wrote.append((home / "pids.max").read_text())
        (home / "pids.max").write_text("")
        groups.end()
    assert wrote == ["11", "", "max"]


@pytest.mark.parametrize("memory", [0, 1 << 30])
def test_nothing_forks_in_the_groups_of_a_dead_shepherd(tmp_path: Path, memory: int) -> None:
    """``memory``: with such a limit the part is in a group of its own."""
    home = group(tmp_path / f"lava-shepherd-{os.getpid()}-1", "pids.max")
    own = group(tmp_path / "lava-u", "pids.max", "memory.max", "memory.swap.max")
    groups = Groups(Places(dict.fromkeys(("pids", "memory"), str(tmp_path)), True), 1, Removals())
    groups.take(1234, moved=True)
    groups.begin("u", CgroupLimits(pids=10, memory_bytes=memory))
    limit = (own if memory else home) / "pids.max"
    assert limit.read_text() == "11"
    limit.write_text("")
    groups.forbid_forks()
    assert limit.read_text() == "0"


def test_a_group_that_is_busy_goes_as_soon_as_it_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that is not empty stands for it. It is tried again, half as often each time."""
    clock = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    busy, empty, removals = group(tmp_path / "busy"), tmp_path / "empty", Removals()
    empty.mkdir()
    removals.add(str(empty))
    removals.add(str(tmp_path / "none"))
    assert removals.wait_for() == math.inf
    assert not empty.exists()
    waits = []
    removals.add(str(busy))
    for _ in range(14):
        waits.append(removals.wait_for())
        removals.on_time()
        assert removals.wait_for() == waits[-1], "it is not time yet"
        clock += waits[-1]
        removals.on_time()
    assert waits == pytest.approx([min(Removals.FIRST * 2**n, Removals.LONGEST) for n in range(14)])
    for file in busy.iterdir():
        file.unlink()
    clock += 60
    removals.on_time()
    assert not busy.exists()
    assert removals.wait_for() == math.inf


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make cgroups")
def test_a_controller_of_the_kernels_is_given_on_and_one_that_is_not_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a controller of version 2 that is there, whichever it is."""
    own = cgroup.own_paths().get("")
    points = cgroup.mounts("cgroup2")
    if own is None or not points:
        pytest.skip("no cgroups of version 2 are mounted here")
    unit = make_unit_group()
    base = unit or Path(points[0][0] + own.rstrip("/"))
    offered = (base / "cgroup.controllers").read_text().split()
    if not offered:
        pytest.skip("the groups of version 2 have no controllers here")
    monkeypatch.setattr(cgroup, "CONTROLLERS", (offered[0], "nonsense"))
    made = base / f"lava-test-{os.getpid()}"
    before = offered[0] in (base / "cgroup.subtree_control").read_text().split()
    try:
        if cgroup.enable(str(base)) != [offered[0]]:
            pytest.skip("this group has processes, and gives no controllers on")
        made.mkdir()
        assert offered[0] in (made / "cgroup.controllers").read_text().split()
        assert cgroup.enable(str(made)) == [offered[0]]
    finally:
        if made.exists():
            made.rmdir()
        if unit is not None:
            unit.rmdir()
        elif not before:
            (base / "cgroup.subtree_control").write_text(f"-{offered[0]}")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make cgroups")
def test_of_the_kernels_version_2_a_unit_gives_parts_all_limits() -> None:
    """A starter alone in its unit's group, and the groups of a part as the kernel has them."""
    unit = make_unit_group()
    if unit is None:
        pytest.skip("no cgroup of version 2 has controllers here")
    base = unit / "lava-1"
    base.mkdir()
    limits = CgroupLimits(memory_bytes=64 << 20, pids=10, cpuset=(0,))
    try:
        with (
            subprocess.Popen([*inside(base), "/bin/sleep", "1000"]) as starter,
            subprocess.Popen(["/bin/sleep", "1000"]) as shepherd,
        ):
            try:
                wait_until(
                    lambda: str(starter.pid) in (base / "cgroup.procs").read_text().split(), 20, "the starter in its group"
                )
                places = cgroup.unified_at(str(base))
                assert set(places.folders) >= {"memory", "pids"}
                groups = Groups(places, 1, Removals())
                groups.take(shepherd.pid)
                groups.begin("u", limits)
                part = base / "lava-u"
                names = ("memory.max", "memory.swap.max", "cpuset.cpus", "pids.max", "cgroup.procs")
                read = [(part / name).read_text().strip() for name in names if (part / name).exists()]
                assert read == [
                    "67108864",
                    *["0"] * (part / "memory.swap.max").exists(),
                    *["0"] * (part / "cpuset.cpus").exists(),
                    "11",
                    str(shepherd.pid),
                ]
                groups.end()
                assert not part.exists()
                assert (Path(groups.home) / "cgroup.procs").read_text().split() == [str(shepherd.pid)]
            finally:
                starter.kill()
                shepherd.kill()
        groups.discard()
    finally:
        remove_unit_group(unit)
    assert not unit.exists()
