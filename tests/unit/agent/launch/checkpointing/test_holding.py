"""A host that holds copies for another: the real process on a loopback port, and what copies and fetches as a job's user."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import io
import json
import os
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from pathlib import Path
from typing import IO, cast

import pytest

from agent.launch import checkpoints
from agent.launch.checkpointing import copies, holding, staging
from agent.launch.checkpointing.asked import Asked
from agent.launch.checkpointing.holder import LENGTH, Holder, HolderError, Putting, putting
from agent.starter.part import generations
from agent.starter.wire import link
from lavad.hosts.joblink import credentials
from proto.daemon.cpu_precedence import LEAST
from tests.support.wait import wait_until

SECRET = b"of this host"
JOB = "7-1000000"


class Held:
    """A holder in a folder, and a job of ``user`` with a folder of its own on each of two hosts."""

    def __init__(self, folder: Path, most: int = 0) -> None:
        self.folder, self.copies = folder, folder / "copies"
        for name in ("copies", "h1", "h2"):
            (folder / name).mkdir(exist_ok=True)
        key, cert = credentials(b"cluster", "holder")
        self.print = hashlib.sha256(ssl.PEM_cert_to_DER_cert(cert.decode())).hexdigest()
        self._listener = link.listen("127.0.0.1")
        self._listener.setblocking(True)
        self._config = {
            "key": key.decode(),
            "cert": cert.decode(),
            "secret": SECRET.hex(),
            "folder": str(self.copies),
            "most": most,
        }
        self.process = self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        fd = self._listener.fileno()
        process = subprocess.Popen(checkpoints.words("hold", str(fd)), stdin=subprocess.PIPE, pass_fds=(fd,))
        assert process.stdin is not None
        process.stdin.write(json.dumps(self._config).encode() + b"\n")
        process.stdin.flush()
        return process

    def kill(self) -> None:
        """``kill -9`` of the process, after which the agent starts another one."""
        with self.process as killed:
            killed.kill()
        self.process = self._started()

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(30) == 0, "it ends with the agent"
        self._listener.close()

    def token(self, job: str = JOB, user: str = "ann") -> str:
        return f"{hmac.digest(SECRET, f'{job} {user}'.encode(), 'sha256').hex()} {job} {user}"

    def asked(self, host: str = "h1", generation: int = 0, has: tuple[int, ...] = (), **other: object) -> Asked:
        holder = {"host": "host2", "address": "127.0.0.1", "port": self.port, "print": self.print, "token": self.token()}
        holder |= {"generations": list(has), **{name: other.pop(name) for name in list(other) if name in holder}}
        fields: dict[str, object] = {"folder": str(self.folder / host), "method": "", "generation": generation}
        return Asked(fields | {"holders": [holder], **other})

    def make(self, number: int, size: int = 5000, host: str = "h1", at: int = 0) -> Path:
        path = self.folder / host / f"gen-{number}"
        path.mkdir()
        data = os.urandom(size)
        (path / "a").write_bytes(data)
        files = {"a": {"size": size, "sha256": hashlib.sha256(data).hexdigest()}}
        (path / "MANIFEST").write_text(json.dumps({"generation": number, "files": files}))
        os.utime(path / "MANIFEST", (1_000_000 + (at or number),) * 2)
        return path

    def held(self, job: str = JOB, user: str = "ann") -> list[str]:
        folder = self.copies / user / job
        return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Held]:
    with contextlib.closing(Held(tmp_path)) as found:
        yield found


def test_a_generation_comes_back_on_another_host_and_older_copies_go(held: Held) -> None:
    for number in (1, 2, 3):
        held.make(number)
        found, size = staging.stage(held.asked(generation=number))
        assert found == number
        assert 4000 < size < 8000
    assert held.held() == ["gen-2", "gen-3"]
    assert staging.stage(held.asked(generation=3)) == (3, size), "it is there already"
    assert (held.copies / "ann").stat().st_mode & 0o777 == 0o700
    staging.fetch(held.asked("h2", has=(2, 3)))
    assert generations.check(str(held.folder / "h2" / "gen-3")) == (5000, "")
    assert os.listdir(held.folder / "h2") == ["gen-3"]
    staging.fetch(held.asked("h2", has=(2, 3)))
    assert os.listdir(held.folder / "h2") == ["gen-3"], "it is not brought again"


def test_all_folders_above_a_copy_are_on_disk_before_it_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    sync = os.fsync

    def fsync(fd: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{fd}"))
        sync(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    data = b"archive"
    archive = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    sent = io.BytesIO(LENGTH.pack(len(data)) + data + LENGTH.pack(0) + json.dumps(archive).encode() + b"\n")
    one = holding.Holding(str(tmp_path), SECRET)
    told: dict[str, object] = {"generation": 1, "made": 5, "bytes": 9, "kept": 2}
    folder = tmp_path / "ann" / JOB
    one._put(cast("IO[bytes]", io.BufferedRWPair(sent, io.BytesIO())), str(folder), "ann", told)
    assert {str(path) for path in (folder / "gen-1.tmp", folder, folder.parent, tmp_path)} <= set(synced)


@pytest.mark.skipif(not os.path.exists("/proc/self/autogroup"), reason="this kernel has no autogroups")
def test_jobs_go_before_what_holds_copies(held: Held) -> None:
    """Whatever the precedence of the agent's session is."""
    held.make(1)
    staging.stage(held.asked(generation=1))
    assert Path(f"/proc/{held.process.pid}/autogroup").read_text().split()[-1] == str(LEAST)


def test_the_one_before_where_the_newest_is_damaged_or_must_not_be(held: Held) -> None:
    for number in (1, 2):
        held.make(number)
        staging.stage(held.asked(generation=number))
    staging.fetch(held.asked("h2", has=(1, 2), most=1))
    assert os.listdir(held.folder / "h2") == ["gen-1"]
    shutil.rmtree(held.folder / "h2" / "gen-1")
    archive = held.copies / "ann" / JOB / "gen-2" / copies.ARCHIVE
    data = bytearray(archive.read_bytes())
    data[len(data) // 2] ^= 1
    archive.write_bytes(data)
    staging.fetch(held.asked("h2", has=(1, 2)))
    assert os.listdir(held.folder / "h2") == ["gen-1"]


def test_a_number_that_is_used_again_is_another_generation(held: Held) -> None:
    shutil.move(held.make(4), held.folder / "before")
    shutil.move(held.folder / "before", held.folder / "h1" / "gen-4")
    staging.stage(held.asked(generation=4))
    shutil.rmtree(held.folder / "h1" / "gen-4")
    held.make(4, size=9000, at=90)
    staging.stage(held.asked(generation=4))
    staging.fetch(held.asked("h2", has=(4,)))
    assert (held.folder / "h2" / "gen-4" / "a").stat().st_size == 9000


def test_nobody_without_the_token_of_the_job_gets_in(held: Held) -> None:
    held.make(1)
    staging.stage(held.asked(generation=1))
    for token in ("", "0" * 64 + f" {JOB} ann", held.token("8-1", "ann").replace("8-1", JOB), held.token("..", "ann")):
        with pytest.raises(HolderError, match="host host2 ended the connection"):
            staging.stage(held.asked(generation=1, token=token))
    staging.fetch(held.asked("h2", has=(1,), token=held.token("8-1", "eve")))
    assert os.listdir(held.folder / "h2") == []
    assert holding.jobs_in(str(held.copies)) == [f"ann/{JOB}"]
    with pytest.raises(HolderError, match="another certificate"):
        staging.stage(held.asked(generation=1, print="0" * 64))


def test_what_a_copy_is_said_to_be_is_bounded(held: Held) -> None:
    one = Holder(held.asked().holders[0])
    told: dict[str, object] = {"generation": 1, "made": 1, "bytes": 10**400, "kept": 1}
    with putting(one, told) as put:
        put.write(b"data")
        put.commit({"size": 4, "sha256": hashlib.sha256(b"data").hexdigest()})
    assert held.held() == ["gen-1"]


def test_a_damaged_generation_and_one_that_breaks_off_leave_nothing(held: Held) -> None:
    (held.make(1) / "a").write_bytes(b"x" * 5000)
    with pytest.raises(Exception, match="generation 1 is damaged: file a has another SHA-256"):
        staging.stage(held.asked(generation=1))
    assert held.held() in ([], ["gen-1.tmp"]), "it is removed as the connection ends"
    held.make(2)
    staging.stage(held.asked(generation=2))
    assert held.held() == ["gen-2"]


def test_what_a_killed_process_has_left_of_a_copy_is_removed(held: Held) -> None:
    held.make(1)
    staging.stage(held.asked(generation=1))
    other = held.copies / "bob" / "9-1" / "gen-4.old.tmp"
    other.mkdir(parents=True)
    with putting(Holder(held.asked().holders[0]), {"generation": 2, "made": 2, "bytes": 10, "kept": 2}):
        wait_until(lambda: held.held() == ["gen-1", "gen-2.tmp"], 30, lambda: str(held.held()))
        held.kill()
    wait_until(lambda: held.held() == ["gen-1"] and not other.exists(), 30, lambda: str(held.held()))


def test_a_copy_waits_for_the_end_of_the_one_before_it(held: Held) -> None:
    held.make(2)
    one = Holder(held.asked().holders[0])
    with contextlib.ExitStack() as first, ThreadPoolExecutor() as pool:
        put = first.enter_context(putting(one, {"generation": 1, "made": 1, "bytes": 10, "kept": 1}))
        put.flush()
        later = pool.submit(staging.stage, held.asked(generation=2))
        with pytest.raises(FutureTimeout):
            later.result(0.2)
        first.close()
        assert later.result(30)[0] == 2
    assert held.held() == ["gen-2"]


def test_strangers_hold_nobody_up(held: Held) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(holding.MOST_STRANGERS + 5):
            stack.enter_context(socket.create_connection(("127.0.0.1", held.port)))
        held.make(1)
        staging.stage(held.asked(generation=1))
    assert held.held() == ["gen-1"]


def test_a_user_with_many_jobs_leaves_connections_to_others(held: Held) -> None:
    told: dict[str, object] = {"generation": 1, "made": 1, "bytes": 10, "kept": 1}
    held.make(1)
    with contextlib.ExitStack() as stack:
        for number in range(holding.MOST_OF_USER):
            one = Holder(held.asked(token=held.token(f"{number}-1", "eve")).holders[0])
            stack.enter_context(putting(one, told)).flush()
        with pytest.raises(HolderError, match="too many connections of user eve are open there") as refused:
            staging.stage(held.asked(generation=1, token=held.token("999-1", "eve")))
        assert refused.value.busy, "a job that starts again waits, and does not go on from an older generation for it"
        staging.stage(held.asked(generation=1))
    assert held.held() == ["gen-1"]


def test_a_user_has_no_more_than_the_site_gives(tmp_path: Path) -> None:
    with contextlib.closing(Held(tmp_path, most=30_000)) as held:
        held.make(1, 20_000)
        staging.stage(held.asked(generation=1))
        held.make(2, 20_000)
        with pytest.raises(HolderError, match=r"^host host2: user ann has 0 MB left there, and a copy needs 0 MB$"):
            staging.stage(held.asked(generation=2))
        lying = held.make(3, 20_000)
        (lying / "MANIFEST").write_text(json.dumps({"files": {}}))
        with pytest.raises(HolderError):
            staging.stage(held.asked(generation=3))
        assert held.held()[:1] == ["gen-1"]


def test_several_jobs_of_a_user_have_no_more_together(tmp_path: Path) -> None:
    data = os.urandom(20_000)
    archive = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    with contextlib.closing(Held(tmp_path, most=30_000)) as held, contextlib.ExitStack() as stack:
        coming = []
        for job in ("7-1", "8-1"):
            one = Holder(held.asked(token=held.token(job)).holders[0])
            coming.append(stack.enter_context(putting(one, {"generation": 1, "made": 1, "bytes": 10_000, "kept": 1})))

        def bring(put: Putting) -> None:
            put.write(data)
            put.commit(archive)

        bring(coming[0])
        with pytest.raises(HolderError):
            bring(coming[1])
        assert (held.held("7-1"), held.held("8-1")) == (["gen-1"], [])


def test_a_holder_that_is_gone_costs_the_newest_alone(held: Held, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "other").mkdir()
    with contextlib.closing(Held(tmp_path / "other")) as other:
        other.make(2)
        staging.stage(other.asked(generation=2))
        away = other.asked("h2", has=(2,)).holders
    held.make(1)
    staging.stage(held.asked(generation=1))
    asked = held.asked("h2", has=(1,))
    asked.holders += away
    staging.fetch(asked)
    assert os.listdir(held.folder / "h2") == ["gen-1"]
    assert capfd.readouterr().err == "checkpoints: generation 2 of host host2: host host2: Connection refused\n"


def test_copies_of_jobs_that_are_over_are_removed(held: Held) -> None:
    held.make(1)
    staging.stage(held.asked(generation=1))
    assert holding.drop(str(held.copies), ["ann/8-1", "../ann", f"ann/{JOB}"]) == 1
    assert list(held.copies.iterdir()) == []
    assert holding.jobs_in(str(held.copies / "none")) == []
