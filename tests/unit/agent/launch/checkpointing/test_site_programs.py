"""What runs a site's checkpoint programs: the command of a restart, generations that are pruned, a full disk."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from agent.launch import checkpoints
from agent.launch.checkpointing.asked import Asked, CheckpointError
from agent.launch.checkpointing.site_programs import restart, restart_command, write


def programs(folder: Path, echkpnt: str, **more: object) -> Asked:
    """The method ``x``, whose echkpnt is this script."""
    for kind, text in (("echkpnt", echkpnt), ("erestart", "exit 0")):
        path = folder / f"{kind}.x"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
    (folder / "ck").mkdir(exist_ok=True)
    return Asked({"folder": str(folder / "ck"), "method": "x", "where": str(folder), **more})


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("LSB_RESTART_CMD=a b 'c d'\n", "a b 'c d'"),
        ('# comment\n LSB_RESTART_CMD = "a b"\n', "a b"),
        ("LSB_RESTART_CMD='a' b", "'a' b"),
        ("LSB_RESTART_CMD='a", "'a"),
        ("LSB_RESTART_CMD=a=b", "a=b"),
    ],
)
def test_the_command_of_a_restart(tmp_path: Path, text: str, command: str) -> None:
    made = tmp_path / "gen-1"
    made.mkdir()
    assert restart_command(str(tmp_path)) == "", "without a generation the job's own runs"
    (made / "MANIFEST").write_text("{}")
    assert restart_command(str(tmp_path)) == ""
    (made / ".restart_cmd").write_text(text)
    assert restart_command(str(tmp_path)) == command


@pytest.mark.parametrize("text", ["", "nonsense", "LSB_RESTART_CMD=", "LSB_RESTART_CMD", "\0\0"])
def test_nonsense_is_no_command(tmp_path: Path, text: str) -> None:
    (tmp_path / "gen-1").mkdir()
    (tmp_path / "gen-1" / "MANIFEST").write_text("{}")
    (tmp_path / "gen-1" / ".restart_cmd").write_text(text)
    with pytest.raises(CheckpointError, match=r"gen-1/\.restart_cmd has no line LSB_RESTART_CMD=command$"):
        restart_command(str(tmp_path))


def test_what_was_left_unfinished_goes_and_what_was_set_aside_stays(tmp_path: Path) -> None:
    asked = programs(tmp_path, "echo state > $2/a; ln -s a $2/b; mkfifo $2/c", kept=1, again=True)
    for name in ("gen-1", "gen-4.damaged", "gen-3.tmp", "gen-x", "other.tmp"):
        (tmp_path / "ck" / name).mkdir()
    (tmp_path / "ck" / "gen-1" / "MANIFEST").write_text('{"files": {}}')
    assert write(asked) == (5, 6)
    assert sorted(os.listdir(tmp_path / "ck")) == ["gen-4.damaged", "gen-5", "gen-x", "other.tmp"]
    manifest = json.loads((tmp_path / "ck" / "gen-5" / "MANIFEST").read_text())
    assert list(manifest["files"]) == ["a"], "links and pipes are kept as they are, and not checked"
    restart(asked)


def test_a_program_must_be_named_by_a_place(tmp_path: Path) -> None:
    for where, why in (("", "LSF_SERVERDIR is not set"), ("bin", "LSB_ECHKPNT_METHOD_DIR bin is no absolute path")):
        with pytest.raises(CheckpointError, match=why):
            write(Asked({"folder": str(tmp_path), "method": "x", "where": where}))


@pytest.mark.skipif(os.geteuid() != 0, reason="a small file system can be mounted by root only")
def test_a_full_disk_is_said_though_the_program_says_that_all_is_well(tmp_path: Path) -> None:
    programs(tmp_path, 'if [ -e "$0.large" ]; then head -c 200000 /dev/zero > $2/a; else echo state > $2/a; fi; exit 0')
    asked = json.dumps({"folder": str(tmp_path / "ck"), "method": "x", "where": str(tmp_path)})
    lines = (
        f"mount -t tmpfs -o size=64k none {tmp_path}/ck || exit 77",
        '"$@" || exit 78',
        f"touch {tmp_path}/echkpnt.x.large",
        '"$@"',
        f"echo $? $(ls {tmp_path}/ck)",
    )
    words = ["unshare", "--mount", "/bin/sh", "-c", "\n".join(lines), "sh", *checkpoints.words("make", asked)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
    assert done.stderr.splitlines() == ["1 6", f"{tmp_path}/ck: No space left on device"]
    assert done.stdout == "1 gen-1\n", "the older one is whole, and nothing is left of the other"
