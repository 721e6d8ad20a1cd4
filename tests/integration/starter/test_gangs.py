"""Gangs: PMI, output of many ranks, and one failure that ends all; on one host and over the TLS link of two."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import ssl
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemons.gangs import certificate, order_gang, pmi, python, ranks
from tests.support.daemons.starters import NOBODY, SHELL_PATH, Rig
from tests.support.processes import is_alive
from tests.support.wait import wait_until

VENV_PYTHON = Path(sys.executable)
ALLREDUCE = """
from mpi4py import MPI
w = MPI.COMM_WORLD
total = w.allreduce(w.rank + 1)
print(f"rank {w.rank} of {w.size}: {total}", flush=True)
"""
# A rank without MPI: speaks PMI-1 by hand over the inherited socket.
CLIENT = """
import os, socket, sys
s = socket.socket(fileno=int(os.environ["PMI_FD"]))
f = s.makefile("rw", newline="\\n")
def ask(line):
    f.write(line + "\\n"); f.flush()
    return f.readline().strip()
def get(key):
    return ask(f"cmd=get kvsname={name} key={key}").partition("value=")[2]
rank, size = int(os.environ["PMI_RANK"]), int(os.environ["PMI_SIZE"])
ask("cmd=init pmi_version=1 pmi_subversion=1")
name = ask("cmd=get_my_kvsname").partition("kvsname=")[2]
ask(f"cmd=put kvsname={name} key=r{rank} value=of {rank} on {os.environ['NODE']}")
assert ask("cmd=barrier_in") == "cmd=barrier_out"
print(name, [get(f"r{i}") for i in range(size)], flush=True)
ask("cmd=barrier_in")
"""
FINISH = 'ask("cmd=finalize")\n'


def test_four_ranks_share_keys_by_pmi(rig: Rig) -> None:
    end = rig.run("g", python(CLIENT + FINISH), tasks=ranks(0, 1, 2, 3), pmi=pmi(4), env={"NODE": "A"})
    assert end["status"] == 0
    assert end["first"] is None
    assert [t["rank"] for t in end["tasks"]] == [0, 1, 2, 3]
    values = [f"of {i} on A" for i in range(4)]
    assert rig.text("g") == f"{pmi(4)['kvsname']} {values}\n" * 4


def test_ranks_of_two_hosts_share_keys_and_one_output_file(two: tuple[Rig, Rig]) -> None:
    order_gang(two, python(CLIENT + FINISH), label=True)
    a, b = two
    assert a.end("r")["status"] == 0
    leaf = b.end("l")
    assert (leaf["status"], [t["rank"] for t in leaf["tasks"]]) == (0, [2, 3])
    values = ["of 0 on A", "of 1 on A", "of 2 on B", "of 3 on B"]
    lines = sorted(a.text("r").splitlines())
    assert lines == [f"[{i}] {pmi(4)['kvsname']} {values}" for i in range(4)]
    a.gone("r")
    b.gone("l")


def test_abort_ends_the_gang_with_its_code(rig: Rig) -> None:
    script = CLIENT + 'if rank == 2:\n    f.write("cmd=abort exitcode=77\\n"); f.flush()\n'
    script += "import time; time.sleep(100)\n"
    end = rig.run("ab", python(script), tasks=ranks(0, 1, 2, 3), pmi=pmi(4), env={"NODE": "A"})
    assert os.waitstatus_to_exitcode(end["status"]) == 77
    assert end["first"]["rank"] == 2
    assert "77" in end["first"]["reason"]


def test_a_rank_that_leaves_without_finalize_ends_the_gang(rig: Rig) -> None:
    script = CLIENT + "if rank == 1:\n    sys.exit(0)\nimport time; time.sleep(100)\n"
    end = rig.run("nf", python(script), tasks=ranks(0, 1, 2, 3), pmi=pmi(4), env={"NODE": "A"})
    assert os.waitstatus_to_exitcode(end["status"]) == 1
    assert end["first"]["rank"] == 1
    assert "Finalize" in end["first"]["reason"]


def test_a_signal_that_kills_one_rank_is_the_status(rig: Rig) -> None:
    script = CLIENT + "import time, signal\nif rank == 3:\n    os.kill(os.getpid(), signal.SIGSEGV)\ntime.sleep(100)\n"
    end = rig.run("seg", python(script), tasks=ranks(0, 1, 2, 3), pmi=pmi(4), env={"NODE": "A"})
    assert end["first"]["rank"] == 3
    assert end["status"] & 0x7F == signal.SIGSEGV
    assert all(t["status"] for t in end["tasks"])


def test_a_failure_on_one_host_ends_the_other(two: tuple[Rig, Rig]) -> None:
    a, b = two
    script = CLIENT + "import time\ntime.sleep(100 if rank != 3 else 0)\nprint('last words'); sys.exit(5)\n"
    order_gang(two, python(script))
    end = a.end("r")
    assert os.waitstatus_to_exitcode(end["status"]) == 5
    assert (end["first"]["rank"], "hostB" in end["first"]["reason"]) == (3, True)
    assert os.waitstatus_to_exitcode(b.end("l")["status"]) == 5
    assert "last words" in a.text("r")
    a.gone("r")
    b.gone("l")


def test_the_end_waits_for_the_last_lines_of_the_other_host(two: tuple[Rig, Rig], tmp_path: Path) -> None:
    """Rank 0 fails once the others have their handlers."""
    a, b = two
    ready = tmp_path / "ready"
    ready.mkdir()
    script = f"import os, signal, sys, time\nr, ready = os.environ['MY_RANK'], {str(ready)!r}\n"
    script += "if r == '0':\n    while len(os.listdir(ready)) < 3:\n        time.sleep(0.01)\n    sys.exit(4)\n"
    script += "def last(*_):\n    print('last of', r, flush=True); time.sleep(100)\n"
    script += "signal.signal(15, last)\nopen(os.path.join(ready, r), 'w').close()\ntime.sleep(100)\n"
    order_gang(two, python(script))
    assert os.waitstatus_to_exitcode(a.end("r")["status"]) == 4
    assert sorted(a.text("r").splitlines()) == [f"last of {i}" for i in (1, 2, 3)]
    a.gone("r")
    b.gone("l")
    assert [t["status"] for t in b.end("l")["tasks"]] == [9, 9]


def test_a_rank_file_that_cannot_be_refuses_the_part_and_ends_the_gang(two: tuple[Rig, Rig]) -> None:
    a, b = two
    order_gang(two, "sleep 100", go=False)
    b.order(b.part("bad", "true", tasks=[{"rank": 0, "env": {}, "stdout": {"path": "/no/such/f"}}], label=True))
    assert b.report("bad", "refused")["code"] == "output"
    b.send({"do": "go", "uid": "l", "root": ["127.0.0.1"]})
    assert "first host cannot be reached at 127.0.0.1" in b.end("l")["first"]["reason"]
    a.send({"do": "kill", "uids": ["r"]})
    a.gone("r")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_gang_of_another_user(two: tuple[Rig, Rig]) -> None:
    folder = two[0].folder
    work = folder / "work"
    work.mkdir()
    os.chown(work, 65534, 65534)
    folder.chmod(0o755)
    order_gang(two, "id -u", user=NOBODY, cwd=str(work), stdout={"path": f"{work}/o"}, label=True)
    assert two[0].end("r")["status"] == 0
    assert sorted((work / "o").read_text().splitlines()) == [f"[{i}] 65534" for i in range(4)]
    assert (work / "o").stat().st_uid == 65534


def test_a_lost_host_ends_the_gang(two: tuple[Rig, Rig]) -> None:
    a, b = two
    order_gang(two, "sleep 100")
    started = [*a.report("r", "started")["tasks"], *b.report("l", "started")["tasks"]]
    b.kill()
    end = a.end("r")
    assert "link to hostB lost" in end["first"]["reason"]
    assert end["status"] == 255 << 8
    wait_until(lambda: not any(is_alive(t["pid"]) for t in started), 30, "all ranks to be gone")
    b.start()


def test_a_killed_part_ends_the_gang_on_the_other_host(two: tuple[Rig, Rig]) -> None:
    a, b = two
    order_gang(two, "sleep 100")
    a.report("r", "started")
    b.report("l", "started")
    b.send({"do": "kill", "uids": ["l"]})
    assert b.end("l")["status"] == 9
    assert "killed" in a.end("r")["first"]["reason"]
    a.gone("r")


def test_a_leaf_that_cannot_connect_says_so(two: tuple[Rig, Rig]) -> None:
    a, b = two
    order_gang(two, "sleep 100", go=False)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        b.send({"do": "go", "uid": "l", "root": ["127.0.0.1", closed.getsockname()[1]]})
        end = b.end("l")
    assert "first host cannot be reached at 127.0.0.1: Connection refused" in end["first"]["reason"]
    a.send({"do": "kill", "uids": ["r"]})
    a.gone("r")


def test_strangers_get_no_word_through_the_link(two: tuple[Rig, Rig]) -> None:
    a, b = two
    order_gang(two, "sleep 0.1; echo fine", go=False, pmi=pmi(4))
    host, port, *_ = a.reports["r"][0]["addr"]
    cert, key = certificate("stranger")
    (a.folder / "c").write_text(cert)
    (a.folder / "k").write_text(key)
    for with_cert in (False, True):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        if with_cert:
            context.load_cert_chain(a.folder / "c", a.folder / "k")
        assert talk(context, host, port) == b""
    with socket.create_connection((host, port), 30) as raw:
        raw.sendall(b"GET / HTTP/1.0\r\n\r\n")
    b.send({"do": "go", "uid": "l", "root": [host, port]})
    a.send({"do": "go", "uid": "r", "root": None})
    assert a.end("r")["status"] == 0
    assert a.text("r") == "fine\n" * 4


def test_silent_strangers_leave_room_for_the_hosts_of_the_job(two: tuple[Rig, Rig]) -> None:
    a, b = two
    order_gang(two, "echo fine", go=False, pmi=pmi(4))
    host, port, *_ = a.reports["r"][0]["addr"]
    with contextlib.ExitStack() as strangers:
        for _ in range(200):
            strangers.enter_context(socket.create_connection((host, port), 30))
        a.send({"do": "go", "uid": "r", "root": None})
        b.send({"do": "go", "uid": "l", "root": [host, port]})
        assert a.end("r")["status"] == 0
    assert a.text("r") == "fine\n" * 4


def talk(context: ssl.SSLContext, host: str, port: int) -> bytes:
    """What a stranger gets for a frame."""
    try:
        with socket.create_connection((host, port), 30) as raw:
            stranger = context.wrap_socket(raw)
            stranger.settimeout(30)
            stranger.sendall(b"\0\0\0\x02{}")
            return stranger.recv(10)
    except TimeoutError:
        raise
    except OSError:
        return b""


def test_lines_of_fast_ranks_never_tear(two: tuple[Rig, Rig]) -> None:
    script = "import os\nr = os.environ['MY_RANK']\n"
    script += "for i in range(3000):\n    print(f'<{r}:{i}:' + r * 40 + '>', flush=i % 7 == 0)\n"
    script += "print('no newline', end='')\n"
    order_gang(two, python(script), label=True)
    assert two[0].end("r")["status"] == 0
    seen: dict[str, int] = dict.fromkeys("0123", 0)
    for line in two[0].text("r").splitlines():
        label, text = line[:4], line[4:]
        if text == "no newline":
            continue
        found = re.fullmatch(r"<(\d):(\d+):(\d{40})>", text)
        assert found, line
        assert label == f"[{found[1]}] "
        assert found[3] == found[1] * 40
        assert int(found[2]) == seen[found[1]]
        seen[found[1]] += 1
    assert set(seen.values()) == {3000}
    assert two[0].text("r").count("no newline\n") == 4


def test_output_is_seen_while_ranks_run_and_kept_when_they_die(rig: Rig) -> None:
    rig.order(rig.part("o", "echo early $MY_RANK; sleep 100", tasks=ranks(0, 1), label=True))
    wait_until(lambda: sorted(rig.text("o").splitlines()) == ["[0] early 0", "[1] early 1"], 30, "the lines")
    rig.send({"do": "kill", "uids": ["o"]})
    rig.gone("o")
    end = rig.run("die", "printf 'half a line'; kill -KILL $$", tasks=ranks(0), label=True)
    assert end["status"] == 9
    assert rig.text("die") == "[0] half a line\n"


def test_rank_files_and_a_separate_error_file(rig: Rig) -> None:
    tasks = ranks(0, 1)
    for task in tasks:
        task["stdout"] = {"path": rig.out(f"rank{task['rank']}")}
    rig.run("files", "echo out $MY_RANK", tasks=tasks)
    assert (rig.text("rank0"), rig.text("rank1")) == ("out 0\n", "out 1\n")
    rig.run("err", "echo out; echo err >&2", tasks=ranks(0, 1), stderr={"path": rig.out("errors")})
    assert (rig.text("err"), rig.text("errors")) == ("out\n" * 2, "err\n" * 2)


def test_what_nobody_sees_is_not_read_and_the_rest_is(rig: Rig) -> None:
    nowhere, seen = (
        {"path": "/dev/null"},
        f'found=$(readlink /proc/$$/fd/1 /proc/$$/fd/2); echo "$found" > {rig.out("seen")}$MY_RANK;',
    )
    rig.run("both", seen, tasks=ranks(0, 1), stdout=nowhere)
    assert Path(rig.out("seen") + "1").read_text() == "/dev/null\n/dev/null\n"
    rig.run("error", f"{seen} echo err >&2", tasks=ranks(0, 1), stdout=nowhere, stderr={"path": rig.out("errors")})
    assert Path(rig.out("seen") + "1").read_text().startswith("/dev/null\npipe:")
    assert rig.text("errors") == "err\n" * 2


def test_only_the_first_rank_reads_the_input(rig: Rig) -> None:
    (rig.folder / "in").write_text("input\n")
    rig.run("in", "cat", tasks=ranks(0, 1), label=True, stdin=str(rig.folder / "in"))
    assert rig.text("in") == "[0] input\n"


needs_mpi = pytest.mark.skipif(
    not list(VENV_PYTHON.parent.parent.glob("lib/python3*/site-packages/mpi4py")), reason="needs mpi4py and mpich"
)


def mpi(script: str) -> dict[str, Any]:
    return {"argv": [str(VENV_PYTHON), "-c", script], "env": {"PATH": SHELL_PATH, "UCX_TLS": "tcp,self"}}


@needs_mpi
def test_real_mpi_on_one_host(rig: Rig) -> None:
    """Real MPICH starts by PMI_FD."""
    end = rig.run("mpi", **mpi(ALLREDUCE), tasks=ranks(0, 1, 2, 3), pmi=pmi(4))
    assert end["status"] == 0, rig.text("mpi")
    assert sorted(rig.text("mpi").splitlines()) == [f"rank {i} of 4: 10" for i in range(4)]


@needs_mpi
def test_real_mpi_over_two_hosts(two: tuple[Rig, Rig]) -> None:
    order_gang(two, **mpi(ALLREDUCE))
    end = two[0].end("r", 60)
    assert end["status"] == 0, two[0].text("r")
    assert sorted(two[0].text("r").splitlines()) == [f"rank {i} of 4: 10" for i in range(4)]
    assert two[1].end("l")["status"] == 0


@needs_mpi
def test_real_mpi_abort(rig: Rig) -> None:
    script = "from mpi4py import MPI\nw = MPI.COMM_WORLD\nw.barrier()\nif w.rank == 1: w.Abort(42)\nw.recv(source=1)\n"
    end = rig.run("abort", **mpi(script), tasks=ranks(0, 1, 2, 3), pmi=pmi(4))
    assert os.waitstatus_to_exitcode(end["status"]) == 42
    assert end["first"]["rank"] == 1
