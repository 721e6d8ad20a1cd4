"""bsub -I, -Ip and -Is on a real cluster: terminals, signals, streams, ends, and what happens when somebody dies."""

from __future__ import annotations

import contextlib
import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from tests.support.live.cluster import Cluster
from tests.support.live.screen import Screen
from tests.support.processes import state_of
from tests.support.wait import wait_until

MARK = "4321.75"
HOSTS = ["host1", "host2"]  # the host of submission, by a socket of its own; another host, by TLS


pytestmark = pytest.mark.cluster(hosts=2)


def newest(cluster: Cluster) -> str:
    return max(cluster.run("bjobs -a -noheader -o jobid").stdout.split(), key=int)


@pytest.mark.parametrize("host", HOSTS)
def test_three_plain_streams(cluster: Cluster, host: str) -> None:
    script = f"bsub -I -m {host} 'echo out; echo err >&2; cat; tty; exit 200'"
    done = cluster.run(script, ok=False, stdin="from afar\n")
    assert done.returncode == 200
    assert done.stdout.splitlines()[1:] == ["out", "from afar", "not a tty"]
    assert done.stderr == f"<<Waiting for dispatch ...>>\n<<Starting on {host}>>\nerr\n"
    joined = cluster.run(f"LSF_INTERACTIVE_STDERR=n bsub -I -m {host} 'echo err >&2'")
    assert joined.stdout.splitlines()[1:] == ["err"]
    assert cluster.run(f"BSUB_QUIET2=1 bsub -Ip -m {host} true").stderr == ""


def test_files_take_the_place_of_streams(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("input\n")
    done = cluster.run("bsub -I -i in -o out 'cat; echo err >&2'", cwd=tmp_path, stdin="not this\n")
    assert (tmp_path / "out").read_text() == "input\n"
    assert done.stderr.endswith("err\n")
    done = cluster.run("bsub -I -tty -o both -e both.err 'echo shown; echo err >&2'", cwd=tmp_path)
    assert done.stdout.splitlines()[1:] == ["shown"]
    assert done.stderr.endswith("err\n")
    assert ((tmp_path / "both").read_text(), (tmp_path / "both.err").read_text()) == ("shown\n", "err\n")
    ranks = cluster.run("bsub -I -tty -n 2 -a mpi -o ranks 'echo rank'", cwd=tmp_path)
    assert (ranks.stdout.splitlines()[1:], (tmp_path / "ranks").read_text()) == (["rank"] * 2, "rank\n" * 2)


def test_ranks_that_fail_at_once_on_another_host_are_heard(cluster: Cluster, tmp_path: Path) -> None:
    """They were over before bsub had come, and nobody saw what they had said."""
    command = f"echo wrong >&2; touch {tmp_path}/over.$PMI_RANK; exit 3"
    words = ["bsub", "-a", "mpi", "-n", "4", "-R", "span[ptile=2]", "-I", command]
    with subprocess.Popen(words, env=cluster.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as bsub:
        assert bsub.stderr is not None
        assert bsub.stderr.readline() == "<<Waiting for dispatch ...>>\n"
        bsub.send_signal(signal.SIGSTOP)
        wait_until(lambda: any(tmp_path.glob("over.*")), 30)
        bsub.send_signal(signal.SIGCONT)
        _, said = bsub.communicate(timeout=60)
    assert bsub.returncode == 3
    assert said.startswith("<<Starting on host")
    assert "wrong" in said.splitlines()


@pytest.mark.parametrize("host", HOSTS)
def test_a_shell_at_a_terminal(cluster: Cluster, host: str, tmp_path: Path) -> None:
    with Screen(f"bsub -Is -m {host} bash --norc -i", cluster.environ, tmp_path) as screen:
        screen.wait(f"<<Starting on {host}>>")
        screen.type("PS1='far''> '; echo $TERM; stty size\r")
        assert "xterm" in screen.wait("30 90")
        screen.wait("far> ")
        screen.resize(41, 101)
        screen.type("while [ \"$(stty size)\" != '41 101' ]; do :; done; echo gr''own\r")
        screen.wait("grown")
        screen.wait("far> ")
        screen.type("(trap 'echo hit; exit 7' INT; echo beg''un; while :; do sleep 0.05; done)\r")
        screen.wait("begun")
        screen.type("\x03")
        screen.wait("hit")
        screen.wait("far> ")
        # no shell, which may take a Ctrl-C for one that its command has dealt with
        screen.type('perl -e \'$| = 1; $SIG{CONT} = sub { print "again\\n" }; print "beg", "un\\n"; sleep 1 while 1\'\r')
        screen.wait("begun")
        screen.type("\x1a")
        screen.wait("Stopped")
        screen.wait("far> ")
        screen.type("fg\r")
        screen.wait("again\r\n")  # it has the terminal then
        screen.type("\x03")
        screen.wait("far> ")
        screen.type("exit 9\r")
        assert screen.wait_end() == 9
        assert screen.as_found


def test_a_suspended_terminal(cluster: Cluster, tmp_path: Path) -> None:
    with Screen("bash --norc -i", {**cluster.environ, "PS1": "near> "}, tmp_path) as screen:
        for how, host in (("-Ip", "host1"), ("-I", "host2")):
            screen.wait("near> ")
            screen.type(f"bsub {how} -m {host} 'echo beg''un; exec sleep {MARK}'\r")
            screen.wait(f"{host}>>")
            screen.wait("begun")
            screen.type("\x1a")
            screen.wait("Stopped")
            screen.wait("near> ")
            wait_until(lambda: "T" in stat_of_job(), 20, lambda: f"the job to stop: {stat_of_job()}")
            screen.type("fg\r")
            wait_until(lambda: "S" in stat_of_job(), 20, lambda: f"the job to go on: {stat_of_job()}")
            screen.type("\x03")
            screen.wait("near> ")
            screen.type("echo code $?\r")
            screen.wait("code 130")


def stat_of_job() -> str:
    """The states of the job's own processes, as the kernel has them: S, T …"""
    states = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess, OSError):
            line = " ".join(process.cmdline())
            if MARK in line and "bsub" not in line:
                states.append(state_of(process.pid))
    return "".join(states)


@pytest.mark.parametrize("host", HOSTS)
def test_the_death_of_bsub_is_the_end_of_the_job(cluster: Cluster, host: str, tmp_path: Path) -> None:
    with Screen(f"bsub -Is -m {host} sleep {MARK}", cluster.environ, tmp_path) as screen:
        screen.wait(f"<<Starting on {host}>>")
        wait_until(lambda: stat_of_job() != "", 20, lambda: "the job to run")
        screen.process.kill()
    assert cluster.wait_end(newest(cluster)) == ["EXIT"]
    assert stat_of_job() == ""


def test_bkill_and_the_end_of_one_that_waits(cluster: Cluster, tmp_path: Path) -> None:
    with Screen(f"bsub -I sleep {MARK}", cluster.environ, tmp_path) as screen:
        screen.wait("<<Starting on")
        cluster.run(f"bkill {newest(cluster)}")
        assert screen.wait_end() == 130
    with Screen("bsub -I -R 'select[mem>99999999]' true", cluster.environ, tmp_path) as screen:
        screen.wait("<<Waiting for dispatch ...>>")
        cluster.run(f"bkill {newest(cluster)}")
        assert screen.wait_end() == 126
        assert "<<Terminated while pending>>" in screen.text
    with Screen("bsub -Ip -R 'select[mem>99999999]' true", cluster.environ, tmp_path) as screen:
        screen.wait("<<Waiting for dispatch ...>>")
        screen.type("\x03")
        assert screen.wait_end() == 130
    assert cluster.wait_end(newest(cluster)) == ["EXIT"]


@pytest.mark.parametrize("host", HOSTS)
def test_one_who_does_not_read_stops_the_job_and_nobody_else(cluster: Cluster, host: str) -> None:
    size = 40_000_000
    command = f"bsub -I -m {host} 'head -c {size} /dev/zero; touch {cluster.folder.path}/written-{host}'"
    with subprocess.Popen(["/bin/sh", "-c", command], stdout=subprocess.PIPE, env=cluster.environ) as bsub:
        assert bsub.stdout is not None
        assert b"submitted" in bsub.stdout.readline()
        assert len(bsub.stdout.read(1_000_000)) == 1_000_000
        assert cluster.run("bsub -I echo meanwhile").stdout.endswith("meanwhile\n")
        assert not (cluster.folder.path / f"written-{host}").exists()
        assert len(bsub.stdout.read()) == size - 1_000_000
        assert bsub.wait() == 0


def test_an_mpi_job_over_two_hosts(cluster: Cluster, tmp_path: Path) -> None:
    script = "read line < /dev/stdin; echo rank $PMI_RANK: $line; echo problem >&2; exit 0"
    (tmp_path / "rank").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "rank").chmod(0o755)
    done = cluster.run("bsub -I -n 4 -R 'span[ptile=2]' -a mpi ./rank", cwd=tmp_path, stdin="hello\n", ok=False)
    assert sorted(done.stdout.splitlines()[1:]) == ["rank 0: hello", "rank 1:", "rank 2:", "rank 3:"]
    assert done.stderr.count("problem\n") == 4


@pytest.mark.parametrize("host", HOSTS)
def test_daemons_that_die_meanwhile(cluster: Cluster, host: str) -> None:
    command = f"bsub -I -m {host} 'echo begun; read a; echo got $a; exit 5'"
    with subprocess.Popen(
        ["/bin/sh", "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=cluster.environ, text=True
    ) as bsub:
        assert bsub.stdout is not None
        assert bsub.stdin is not None
        while bsub.stdout.readline() != "begun\n":
            pass
        for name in ("lavad", f"agent-{host}"):
            cluster.kill(name, signal.SIGKILL)
        bsub.stdin.write("through\n")
        bsub.stdin.flush()
        assert bsub.stdout.readline() == "got through\n"
        cluster.up()
        assert bsub.wait(60) == 5
    cluster.wait_end(newest(cluster))


def test_what_other_commands_say_of_it(cluster: Cluster) -> None:
    with subprocess.Popen(
        ["bsub", "-I", "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=cluster.environ, text=True
    ) as bsub:
        assert bsub.stdout is not None
        assert bsub.stdin is not None
        assert "submitted" in bsub.stdout.readline()
        job = newest(cluster)
        bsub.stdin.write("there\n")
        bsub.stdin.flush()
        assert bsub.stdout.readline() == "there\n"
        cluster.wait_for(job, "RUN")
        assert "Cannot bpeek an interactive job." in cluster.run(f"bpeek {job}", ok=False).stderr
        assert ", Interactive mode," in cluster.run(f"bjobs -UF {job}").stdout
        bsub.stdin.close()
        assert bsub.wait(20) == 0


def test_what_keeps_it_from_starting_is_said(cluster: Cluster) -> None:
    done = cluster.run("LSB_EXIT_IF_CWD_NOTEXIST=Y bsub -I -cwd /nonexistent pwd", ok=False)
    assert done.returncode == 2
    assert done.stderr.endswith("bsub: working folder /nonexistent: No such file or directory\n")
    assert cluster.run("bsub -I echo unseen >&-").stderr.startswith("<<Waiting")


def test_a_master_that_is_away_at_the_end(cluster: Cluster) -> None:
    with subprocess.Popen(
        ["bsub", "-I", "read a; exit 6"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env=cluster.environ,
        text=True,
    ) as bsub:
        assert bsub.stdin is not None
        assert bsub.stderr is not None
        while "Starting on" not in bsub.stderr.readline():
            pass
        cluster.kill("lavad", signal.SIGKILL)
        bsub.stdin.close()
        assert bsub.wait(40) == 6
    cluster.up()
    cluster.wait_end(newest(cluster))


def test_a_terminal_gets_a_hint_and_completions(cluster: Cluster, tmp_path: Path) -> None:
    """What programs read is LSF's line alone."""
    plain = cluster.run("bqueues norml", ok=False)
    assert plain.stderr == "norml: No such queue\n"
    with Screen("bqueues norml", cluster.environ, tmp_path) as screen:
        screen.wait("Did you mean normal?")
    with Screen("bhosts hst1", cluster.environ, tmp_path) as screen:
        screen.wait("Did you mean host1")
    words = 'COMP_WORDS=(bsub -q nor); COMP_CWORD=2; _lava; echo "${COMPREPLY[@]}"'
    done = cluster.run(
        f"bash -c 'eval \"$(lava completion bash)\"; {words}; COMP_WORDS=(bhosts host2); COMP_CWORD=1; _lava; echo $COMPREPLY'"
    )
    assert done.stdout == "normal\nhost2\n"


def test_top_and_watch_show_the_cluster_and_a_job_live(cluster: Cluster, tmp_path: Path) -> None:
    """Keys act at once; a watch ends with its job, and leaves its last lines on the screen."""
    marker = tmp_path / "go"
    job = cluster.submit(f"-J watched 'echo first line; while ! test -e {marker}; do sleep 0.1; done'")
    with Screen("lava top -d 0.5", cluster.environ, tmp_path, columns=120) as screen:
        screen.wait("watched")
        screen.type("p")
        screen.wait("WHY IT WAITS")
        screen.type("q")
        assert screen.process.wait(30) == 0
    with Screen(f"lava watch -d 0.2 {job}", cluster.environ, tmp_path, columns=120) as screen:
        screen.wait("first line")
        marker.touch()
        screen.wait(f"Job {job} DONE")
        assert screen.process.wait(30) == 0
    assert f"Job {job} DONE   watched" in cluster.run(f"lava watch {job}").stdout
    assert cluster.run("lava watch 4711", ok=False).stderr == "Job <4711> is not found\n"
    assert cluster.run("lava top").stdout.splitlines()[2].startswith("HOST ")
    with Screen("bjobs --watch -J again", cluster.environ, tmp_path, columns=120) as screen:
        screen.wait("is not found")
        seen = cluster.submit("-J again sleep 60")
        screen.wait(f"{seen}  ")
        screen.wait(" RUN ")
        cluster.run(f"bkill {seen}")
        screen.wait("is not found")
        screen.type("\x03")
        assert screen.process.wait(30) == 130
    refused = cluster.run("bjobs --watch 4711", ok=False)
    assert (refused.returncode, refused.stderr) == (255, "Job <4711> is not found\n")


def test_a_job_whose_starter_is_killed_ends_for_its_user_as_for_bjobs(cluster: Cluster) -> None:
    asked = subprocess.Popen(
        ["/bin/sh", "-c", "bsub -I -m host2 'echo begun; sleep 600'"], env=cluster.environ, stdout=subprocess.PIPE
    )
    assert asked.stdout is not None
    while asked.stdout.readline() != b"begun\n":
        pass
    cluster.kill("starter-host2")
    assert asked.wait(60) == 255
    job = newest(cluster)
    cluster.wait_end(job)
    assert cluster.run(f"bjobs -a -noheader -o exit_code {job}").stdout == "255\n"
