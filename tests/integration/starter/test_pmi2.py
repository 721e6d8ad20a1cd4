"""Gangs whose ranks speak PMI-2: by hand, on one host and over the TLS link of two."""

from __future__ import annotations

import os

import pytest

from tests.support.daemons.gangs import pmi, python, ranks, run, run_over
from tests.support.daemons.starters import Rig

# A rank without MPI: speaks PMI-2 by hand over the inherited socket.
CLIENT = """
import os, signal, socket
s = socket.socket(fileno=int(os.environ["PMI_FD"]))
f = s.makefile("rwb")
def send(text):
    f.write(b"%6d%b" % (len(text), text.encode())); f.flush()
def ask(text):
    send(text)
    return f.read(int(f.read(6))).decode()
def say(text):
    os.write(1, f"rank {rank}: {text}\\n".encode())
rank = int(os.environ["PMI_RANK"])
f.write(b"cmd=init pmi_version=2 pmi_subversion=0\\n"); f.flush()
assert f.readline() == b"cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\\n"
size = int(ask(f"cmd=fullinit;pmirank={rank};threaded=FALSE;").partition(";size=")[2].partition(";")[0])
"""
SHARE = (
    CLIENT
    + """
ask(f"cmd=kvs-put;key=r{rank};value=of {rank} on {os.environ['NODE']};")
ask(f"cmd=info-putnodeattr;key=n{rank};value=x;")
assert ask("cmd=kvs-fence;thrid=7;") == "cmd=kvs-fence-response;thrid=7;rc=0;"
near = [str(i) for i in range(size) if "TRUE" in ask(f"cmd=info-getnodeattr;key=n{i};wait=FALSE;")]
far = [ask(f"cmd=kvs-get;key=r{i};").split(";")[2] for i in range(size)]
ask("cmd=kvs-fence;")
say(" ".join(near + far))
ask("cmd=finalize;")
"""
)
# A rank dies while the others are in a fence; these have a second from SIGTERM on to say what they were told.
DIES = (
    CLIENT
    + """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
ask("cmd=kvs-fence;")
if rank == 3:
    os.kill(os.getpid(), signal.SIGKILL)
say(ask("cmd=kvs-fence;"))
"""
)


def test_ranks_share_keys_and_attributes_of_their_host(rig: Rig) -> None:
    end, said = run(rig, python(SHARE))
    assert (end["status"], end["first"]) == (0, None)
    values = " ".join(f"value=of {i} on A" for i in range(4))
    assert said == [f"rank {i}: 0 1 2 3 {values}" for i in range(4)]


def test_ranks_of_two_hosts_share_keys_but_no_attributes(two: tuple[Rig, Rig]) -> None:
    end, said = run_over(two, python(SHARE))
    assert end["status"] == 0
    values = "value=of 0 on A value=of 1 on A value=of 2 on B value=of 3 on B"
    assert said == [f"rank {i}: {'0 1' if i < 2 else '2 3'} {values}" for i in range(4)]


@pytest.mark.parametrize("hosts", [1, 2])
def test_a_rank_that_dies_in_a_fence_ends_the_others_with_an_error(hosts: int, request: pytest.FixtureRequest) -> None:
    if hosts == 1:
        end, said = run(request.getfixturevalue("rig"), python(DIES))
    else:
        end, said = run_over(request.getfixturevalue("two"), python(DIES))
    assert (end["first"]["rank"], end["status"] & 0x7F) == (3, 9)
    why = f"rank 3 was killed by signal 9 on {'hostA' if hosts == 1 else 'hostB'}"
    assert said == [f"rank {i}: cmd=kvs-fence-response;rc=1;errmsg={why};" for i in range(3)]


def test_abort_and_a_message_of_no_length_end_the_gang(rig: Rig) -> None:
    wait = "import time; time.sleep(100)\n"
    abort = 'if rank == 2:\n    send("cmd=abort;isworld=TRUE;exitcode=77;")\n'
    end, _ = run(rig, python(CLIENT + abort + wait))
    assert (end["first"]["rank"], os.waitstatus_to_exitcode(end["status"])) == (2, 77)
    bad = 'if rank == 1:\n    f.write(b"GET / HTTP/1.1"); f.flush()\n'
    order = rig.part("bad", python(CLIENT + bad + wait), tasks=ranks(0, 1), pmi=pmi(2))
    rig.order(order)
    assert rig.end("bad")["first"]["reason"] == "rank 1 sent a PMI-2 message of no valid length: 'GET / '"
    rig.gone("bad")


def test_a_rank_that_leaves_without_finalize_ends_the_gang(rig: Rig) -> None:
    end, _ = run(rig, python(CLIENT + "if rank == 1:\n    raise SystemExit\nimport time; time.sleep(100)\n"))
    assert os.waitstatus_to_exitcode(end["status"]) == 1
    assert end["first"]["reason"] == "rank 1 on hostA ended without MPI_Finalize"


def test_ranks_of_one_host_that_speak_two_versions_are_refused(rig: Rig) -> None:
    script = 'import os, socket, time\ns = socket.socket(fileno=int(os.environ["PMI_FD"]))\n'
    script += "s.sendall(b'cmd=init pmi_version=%d pmi_subversion=0\\n' % (1 + int(os.environ['PMI_RANK'])))\ntime.sleep(100)\n"
    end, _ = run(rig, python(script), size=2)
    assert end["first"]["reason"] in (
        "rank 1 speaks PMI-2, another rank of the job PMI-1",
        "rank 0 speaks PMI-1, another rank of the job PMI-2",
    )


def test_hosts_whose_ranks_speak_two_versions_are_refused(two: tuple[Rig, Rig]) -> None:
    by_lines = 'import os, socket\nf = socket.socket(fileno=int(os.environ["PMI_FD"])).makefile("rwb")\n'
    by_lines += 'f.write(b"cmd=init pmi_version=1 pmi_subversion=1\\ncmd=barrier_in\\n"); f.flush()\nf.readline(); f.readline()\n'
    shell = '[ $NODE = A ] && exec "$0" -I -S -c "$1"; exec "$0" -I -S -c "$2"'
    argv = ["/bin/sh", "-c", shell, python("")[0], by_lines, CLIENT + 'ask("cmd=kvs-fence;")\n']
    end, _ = run_over(two, argv)
    assert end["first"]["reason"] in (
        "the ranks of hostB speak PMI-2, those of another host PMI-1",
        "the ranks of the first host speak PMI-1, those of another host PMI-2",
    )
