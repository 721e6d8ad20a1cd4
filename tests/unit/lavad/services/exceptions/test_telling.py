"""What eadmin and a mailer get, and as whom they run; a mailer that fails or hangs is tried again."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from config.programs.as_admin import AsAdmin
from lavad.core.site.conf import Conf, Params
from lavad.services.exceptions import telling
from lavad.services.exceptions.found import MOST_LINES, Found, mail_of
from lavad.services.exceptions.telling import Teller
from proto.names import Entry
from tests.support.wait import wait_until

CONF = Conf(cluster="c1", admins=("boss", "deputy"), params=Params())
ROWS = [
    Found(7, 1, "overrun", ("overrun", "7", "3700", "0.90", "ann", "normal", "h1,h2", "a?b")),
    Found(9, 1, "idle", ("idle", "9[2]", "900", "0.01", "bob", "normal", "h1", "sleepy")),
]
NOBODY = 65534


def program(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def teller_of(lsf: dict[str, str], conf: Conf = CONF, root: bool = False, entry: Entry | None = None) -> Teller:
    """``entry``: the only user that the host knows."""
    return Teller(AsAdmin(lsf, lambda: conf.admins, root, lambda _: entry), lambda: conf)


def is_told(teller: Teller) -> bool:
    return asyncio.run(teller.jobs(ROWS))


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that the administrator can reach and write in, as none of pytest's."""
    with tempfile.TemporaryDirectory(prefix="lava-eadmin-") as folder:
        os.chmod(folder, 0o777)
        yield Path(folder)


def test_eadmin_reads_a_line_for_each(place: Path) -> None:
    program(place / "eadmin", f'echo "$@" > {place}/words; cat > {place}/lines')
    teller = teller_of({"LSF_SERVERDIR": str(place), "LSB_MAILPROG": "/bin/false"})
    assert is_told(teller)
    assert (place / "words").read_text() == "job\n"
    assert [line.split("\t") for line in (place / "lines").read_text().splitlines()] == [list(one.cells) for one in ROWS]
    assert asyncio.run(teller.hosts([("h1", "eadmin: JOB EXIT THRESHOLD EXCEEDED")]))
    assert (place / "words").read_text() == "host\n"
    assert (place / "lines").read_text() == "h1\teadmin: JOB EXIT THRESHOLD EXCEEDED\n"


@pytest.mark.parametrize("extended", [False, True])
def test_without_eadmin_the_administrators_get_a_mail(place: Path, extended: bool) -> None:
    mailer = program(place / "mailer", f'echo "$@" > {place}/words; cat > {place}/mail')
    conf = replace(CONF, params=replace(CONF.params, extend_job_exception_notification=extended))
    assert is_told(teller_of({"LSF_SERVERDIR": str(place), "LSB_MAILPROG": str(mailer)}, conf))
    assert (place / "words").read_text() == "-oi -FLSF -fboss boss,deputy\n"
    head, _, body = (place / "mail").read_text().partition("\n\n")
    assert head.splitlines() == [
        "To: boss,deputy",
        "From: LSF <boss>",
        "Subject: Job exceptions in cluster <c1>: 1 idle, 1 overrun",
    ]
    lines = [line.split() for line in body.splitlines()]
    if extended:
        assert lines[0] == ["EXCEPTION", "JOB_ID", "RUN_TIME", "IDLE_FACTOR", "USER", "QUEUE", "EXEC_HOST", "JOB_NAME"]
        assert lines[1:] == [list(one.cells) for one in ROWS]
    else:
        assert lines == [
            ["EXCEPTION", "JOB_ID", "USER", "QUEUE"],
            ["overrun", "7", "ann", "normal"],
            ["idle", "9[2]", "bob", "normal"],
        ]


def test_a_mail_lists_only_so_many() -> None:
    lines = mail_of([ROWS[0]] * (MOST_LINES + 99_000), "c1", False).splitlines()
    assert lines[0] == f"Subject: Job exceptions in cluster <c1>: {MOST_LINES + 99_000} overrun"
    assert len(lines) == MOST_LINES + 4
    assert lines[-1].startswith("... and 99000 more")


def test_a_program_that_fails_is_tried_again_and_said_once(place: Path, caplog: pytest.LogCaptureFixture) -> None:
    eadmin = program(place / "eadmin", "echo no room; exit 3")
    teller = teller_of({"LSF_SERVERDIR": str(place)})
    assert not is_told(teller)
    assert not is_told(teller)
    assert [record.getMessage() for record in caplog.records] == [f"exceptions were not told: {eadmin} exited with 3: no room"]


def test_a_program_that_hangs_is_ended(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telling, "SECONDS", 0.2)
    program(place / "eadmin", "sleep 1000")
    assert not is_told(teller_of({"LSF_SERVERDIR": str(place)}))


def test_a_program_that_leaves_something_behind_has_been_told(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telling, "SECONDS", 2.0)
    program(place / "eadmin", f"sleep 1000 & echo $! > {place}/left")
    assert is_told(teller_of({"LSF_SERVERDIR": str(place)}))
    left = int((place / "left").read_text())
    wait_until(
        lambda: not Path(f"/proc/{left}/fd").exists() or not os.path.exists(f"/proc/{left}/cwd"), 20, lambda: f"{left} lives"
    )


def test_where_there_is_neither_nobody_is_told(place: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert is_told(teller_of({"LSB_MAILPROG": str(place / "none")}))
    assert "no mailer" in caplog.text


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_root_becomes_the_administrator(place: Path) -> None:
    program(place / "eadmin", f'id -u > {place}/who; echo "$USER $HOME" >> {place}/who')
    boss = Entry("nobody", NOBODY, NOBODY, "/nonexistent", "/bin/sh")
    conf = replace(CONF, admins=("nobody",))
    assert is_told(teller_of({"LSF_SERVERDIR": str(place)}, conf, root=True, entry=boss))
    assert (place / "who").read_text() == f"{NOBODY}\nnobody /nonexistent\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("name", ["eadmin", "mailer"])
def test_what_others_may_write_is_not_run_as_root(place: Path, caplog: pytest.LogCaptureFixture, name: str) -> None:
    """Where root is the first administrator."""
    tells = program(place / name, f"touch {place}/ran")
    root = Entry("root", 0, 0, "/root", "/bin/sh")
    lsf = {"LSF_SERVERDIR": str(place), "LSB_MAILPROG": str(place / "mailer")}
    teller = teller_of(lsf, replace(CONF, admins=("root",)), root=True, entry=root)
    assert not is_told(teller)
    assert not (place / "ran").exists()
    assert f"{tells} is not run as root, as others than root may write it" in caplog.text
    place.chmod(0o755)
    assert is_told(teller)
    assert (place / "ran").exists()


def test_an_administrator_whom_this_host_does_not_know(place: Path, caplog: pytest.LogCaptureFixture) -> None:
    program(place / "eadmin", f"touch {place}/ran")
    assert not is_told(teller_of({"LSF_SERVERDIR": str(place)}, root=True))
    assert not (place / "ran").exists()
    assert "administrator boss is not known on this host" in caplog.text
