"""LAVA_FENCE: what the program is given, and when root does not run it."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from lavad.hosts.leases import Leases
from lavad.services.fencing import Fencing
from tests.support.worlds.watched import Watched

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="what root alone may write has to be root's")


@pytest.fixture
def program() -> Iterator[Path]:
    """A program that writes down its words, in a folder that anybody can enter."""
    with tempfile.TemporaryDirectory(prefix="lava-fence-") as folder:
        os.chmod(folder, 0o755)
        path = Path(folder) / "fence"
        path.write_text('#!/bin/sh\nprintf "%s|" "$@" > "$(dirname "$0")/words"\n')
        path.chmod(0o755)
        yield path


def asked(program: Path, *, root: bool, address: str = "10.0.0.1") -> str:
    """How it ended for a host that has said that this is its address."""
    return asyncio.run(Fencing(Watched().engine, Leases(0.0), str(program), root).ask("h1", address))[0]


@AS_ROOT
@pytest.mark.parametrize("loose", ["program", "folder"])
def test_root_runs_it_only_where_nobody_else_can_write_it(program: Path, loose: str) -> None:
    """Who can write the program, or the folder that it is in, would be root."""
    assert asked(program, root=True) == "exited with 0"
    (program.parent / "words").unlink()
    (program if loose == "program" else program.parent).chmod(0o777)
    assert asked(program, root=True) == "is not run as root, as others than root may write it"
    assert not (program.parent / "words").exists()
    assert asked(program, root=False) == "exited with 0"


@pytest.mark.parametrize(
    ("address", "given"), [("10.0.0.1", "10.0.0.1"), ("fe80::1%eth0", "fe80::1%eth0"), ("--all", ""), ("$(reboot)", "")]
)
def test_what_a_host_says_of_its_address_is_an_address_or_nothing(program: Path, address: str, given: str) -> None:
    """An option, or words of a shell, are none."""
    asked(program, root=False, address=address)
    assert (program.parent / "words").read_text() == f"h1|{given}|"
