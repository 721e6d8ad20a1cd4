"""Options of bsub that act on the host of execution: copies of files, spooled input, limits, an end before the beginning."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.live.cluster import Cluster
from tests.support.wait import wait_until


def test_files_come_and_go_with_the_job(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("one\n")
    (tmp_path / "log").write_text("before\n")
    job = cluster.submit("-f 'in > copy' -f 'log << copy' -o out 'cat copy; echo two >> copy'", cwd=tmp_path)
    assert cluster.wait_end(job) == ["DONE"]
    assert (tmp_path / "out").read_text().startswith("one\n")
    assert (tmp_path / "log").read_text() == "before\none\ntwo\n"
    assert (tmp_path / "in").read_text() == "one\n"
    assert ', Copy Files "in > copy", "log << copy"' in cluster.run(f"bjobs -UF -a {job}").stdout
    assert cluster.wait_end(cluster.submit("-f 'missing > copy' true", cwd=tmp_path)) == ["EXIT"]


@pytest.mark.parametrize("out", ["", "-o out"])
def test_copies_back_that_fail_are_told_in_the_output(cluster: Cluster, tmp_path: Path, out: str) -> None:
    job = cluster.submit(f"{out} -f 'in < missing' -f 'two << copy' 'echo one > copy'", cwd=tmp_path)
    assert cluster.wait_end(job) == ["DONE"]
    wait_until(lambda: "Post job process failed" in cluster.run(f"bhist -l {job}").stdout, 20)
    told = (tmp_path / "out").read_text() if out else cluster.run(f"bpeek {job}").stdout
    assert "-f in < missing: not copied: cp: cannot stat" in told
    assert (tmp_path / "two").read_text() == "one\n"


@pytest.mark.parametrize(("command", "state"), [("true", "DONE"), ("exit 3", "EXIT")])
def test_a_report_for_which_the_disk_has_no_room_is_told_elsewhere(cluster: Cluster, command: str, state: str) -> None:
    job = cluster.submit(f"-o /dev/full '{command}'")
    assert cluster.wait_end(job) == [state]
    said = "its report was not written: /dev/full: No space left on device"
    assert said in cluster.run(f"bjobs -UF -a {job}").stdout
    assert said in cluster.run(f"lava why {job}").stdout.replace("Its", "its")


def test_input_is_as_it_was(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"bytes \xff\n")
    job = cluster.submit("-H -is in -o out cat", cwd=tmp_path)
    (tmp_path / "in").unlink()
    cluster.run(f"bresume {job}")
    assert cluster.wait_end(job) == ["DONE"]
    assert (tmp_path / "out").read_bytes().startswith(b"bytes \xff\n")
    done = cluster.run("bsub -is nosuch true", ok=False, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (255, "nosuch: No such file or directory. Job not submitted.\n")


def test_limits(cluster: Cluster, tmp_path: Path) -> None:
    done = cluster.run("ulimit -S -c 0; ulimit -S -s 4096; bsub -ul -I 'ulimit -c; ulimit -s'")
    assert done.stdout.splitlines()[1:] == ["0", "4096"]
    assert cluster.run("ulimit -S -s 4096; bsub -ul -S 2MB -I 'ulimit -s'").stdout.splitlines()[1:] == ["2048"]
    script = "import threading as t, time; [t.Thread(target=time.sleep, args=(60,)).start() for _ in range(8)]"
    job = cluster.submit(f"-T 4 \"python3 -c '{script}'\"")
    assert cluster.wait_end(job) == ["EXIT"]
    assert "TERM_THREADLIMIT" in cluster.run(f"bjobs -l -a {job}").stdout


def test_a_memory_limit_that_is_learnt(cluster: Cluster, tmp_path: Path) -> None:
    """100 MB do not fit into 64; what was measured is where the next job begins, also of another master."""
    (tmp_path / "large.py").write_text(
        "import os, time\nb = b'x' * (100 << 20)\nwhile not os.path.exists('end'): time.sleep(0.05)\n"
    )
    job = cluster.submit("-M '64M auto' python3 large.py", cwd=tmp_path)
    wait_until(lambda: "128 MB" in cluster.run(f"bhist -UF -l {job}").stdout, 30, "a second attempt")
    measured = f"bjobs -noheader -o max_mem {job}"
    wait_until(lambda: cluster.run(measured).stdout.strip()[:3].isdigit(), 30, "100 MB are measured")
    (tmp_path / "end").touch()
    assert cluster.wait_end(job) == ["DONE"]
    cluster.kill("lavad")
    cluster.up()
    notice = cluster.run("bsub -H -M auto python3 ./large.py").stderr
    assert re.fullmatch(r"Memory limit 1\d\d MB: what large.py has needed\n", notice), notice


def test_a_pre_execution_that_ends_the_job(cluster: Cluster) -> None:
    job = cluster.submit("-E 'exit 99' true")
    assert cluster.wait_end(job) == ["EXIT"]


def test_conditions_on_post_execution(cluster: Cluster, tmp_path: Path) -> None:
    """-Ep is run, and post_done and post_err are about how it ended."""
    good = cluster.submit(f"-Ep 'echo $LSB_JOBEXIT_STAT > {tmp_path}/status' 'exit 3'")
    bad = cluster.submit("-Ep 'exit 5' true")
    assert cluster.wait_end(good) == ["EXIT"]
    assert cluster.wait_end(bad) == ["DONE"]
    assert (tmp_path / "status").read_text() == "768\n"
    for condition, status in (
        (f"post_done({good})", 0),
        (f"post_err({bad})", 0),
        (f"post_err({good})", 255),
        (f"post_done({bad})", 255),
    ):
        assert cluster.run(f"bwait -w '{condition}'", ok=False).returncode == status, condition
    both = cluster.submit(f"-w 'post_done({good}) && post_err({bad})' true")
    assert cluster.wait_end(both) == ["DONE"]
    assert "Post job process failed" in cluster.run(f"bhist -l {bad}").stdout


def test_the_sites_eexec(cluster: Cluster, tmp_path: Path) -> None:
    folder = Path(cluster.environ["LSF_SERVERDIR"])
    folder.mkdir(exist_ok=True)
    eexec = f"{{ echo $LS_EXEC_T $LSB_JOBID; cat; }} >> {tmp_path}/seen; exit 5"
    for name, text in (("esub", "echo from esub"), ("eexec", eexec)):
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    cluster.kill("agent-host1")
    cluster.up()
    job = cluster.submit(f"'echo job >> {tmp_path}/seen'")
    assert cluster.wait_end(job) == ["DONE"]
    seen = (tmp_path / "seen").read_text()
    assert seen == f"START {job}\nfrom esub\njob\nEND {job}\nfrom esub\n"
    for name in ("esub", "eexec"):
        (folder / name).unlink()


def test_a_folder_with_a_pattern_is_made_and_where_a_job_was_submitted_is_known(cluster: Cluster, tmp_path: Path) -> None:
    job = cluster.submit("-cwd below/%J -o out -K 'pwd; echo $PWD $LS_SUBCWD'", cwd=tmp_path)
    made = tmp_path / "below" / str(job)
    assert made.stat().st_mode & 0o777 == 0o700
    assert (made / "out").read_text().splitlines()[:2] == [str(made), f"{made} {tmp_path}"]
    cluster.submit(f"-cwd /proc/none%J -o {tmp_path}/other -K pwd", cwd=tmp_path)
    text = (tmp_path / "other").read_text()
    assert text.startswith("/tmp\n")
    assert "could not be entered.\n</tmp> was used as the working directory." in text
