"""Mail of jobs, through the site's mailer: no -o, -N, -B, -u; and the kept output without a mailer."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.live.cluster import Cluster
from tests.support.wait import wait_until

MAILER = """#!/bin/sh
for to; do :; done
cd {box} && cat >"new.$$" && mv "new.$$" "$to.$$"
"""


@pytest.fixture(scope="module", autouse=True)
def box(cluster: Cluster) -> Path:
    """Where the site's mailer puts mails; before there was one, the output of a job was kept."""
    job = cluster.submit("'echo kept; exit 2'")
    cluster.wait_for(job, "EXIT")
    text = "".join(cluster.run(f"bjobs -l {job}").stdout.split()).replace("\n", "")
    assert "Outputkeptin<host1:/" in text
    folder = cluster.folder.path.parent
    box, mailer = folder / "box", folder / "mailer"
    box.mkdir()
    box.chmod(0o777)
    mailer.write_text(MAILER.format(box=box))
    mailer.chmod(0o755)
    with (cluster.folder.conf / "lsf.conf").open("a") as file:
        file.write(f"LSB_MAILPROG={mailer}\nLSB_MAILSIZE_LIMIT=4\n")
    cluster.kill("agent-host1")
    cluster.up()
    return box


def mails(cluster: Cluster) -> dict[str, str]:
    """To whom, and what; each mail is taken once."""
    box = cluster.folder.path.parent / "box"
    found = {}
    for path in box.iterdir():
        if not path.name.startswith("new."):
            found[path.name.partition(".")[0]] = path.read_text()
            path.unlink()
    return found


def run(cluster: Cluster, words: str, cwd: Path, count: int = 1) -> list[tuple[str, str]]:
    """The mails of a job; that of the job before may come late."""
    job = cluster.submit(words, cwd=cwd)
    cluster.wait_end(job)
    came: list[tuple[str, str]] = []

    def all_came() -> bool:
        came.extend((to, text) for to, text in mails(cluster).items() if f"Job {job}" in text)
        return len(came) >= count

    wait_until(all_came, 30, lambda: f"{count} mails: {came}")
    return came


def test_without_o_report_and_output_go_by_mail(cluster: Cluster, tmp_path: Path) -> None:
    ((to, text),) = run(cluster, "echo by mail", tmp_path)
    assert to == cluster.run("id -un").stdout.strip()
    assert f"\nTo: {to}\n" in f"\n{text}"
    assert "\nSubject: Job " in text
    assert "Successfully completed." in text
    assert text.endswith("by mail\n")


def test_output_that_is_too_large_for_a_mail_stays_where_it_is(cluster: Cluster, tmp_path: Path) -> None:
    ((_, text),) = run(cluster, "head -c 5000 /dev/zero", tmp_path)
    assert "The output has 4 KB, more than a mail brings here (LSB_MAILSIZE_LIMIT: 4 KB).\nIt is in /" in text
    assert "\0" not in text
    job = int(text.partition("; bpeek ")[2].split()[0])
    assert "\0" * 5000 in cluster.run(f"bpeek {job}").stdout


def test_no_mail_of_a_job_that_wants_none(cluster: Cluster, tmp_path: Path) -> None:
    assert cluster.wait_end(int(cluster.run("LSB_JOB_REPORT_MAIL=N bsub true", cwd=tmp_path).stdout[5:].split(">")[0])) == [
        "DONE"
    ]
    run(cluster, "-u last true", tmp_path)
    assert not mails(cluster)


def test_u_names_who_gets_it(cluster: Cluster, tmp_path: Path) -> None:
    ((to, _),) = run(cluster, "-u bob false", tmp_path)
    assert to == "bob"


def test_with_o_mail_comes_only_when_asked_for(cluster: Cluster, tmp_path: Path) -> None:
    ((to, text),) = run(cluster, "-N -u eve -o out echo words", tmp_path)
    assert to == "eve"
    assert "words\n" not in text.split("LSBATCH: User input")[1].split("Successfully")[1]
    assert (tmp_path / "out").read_text() == "words\n"
    cluster.wait_end(cluster.submit("-o quiet -u eve true", cwd=tmp_path))
    ((to, text),) = run(cluster, "-B -o out2 -u sam sleep 0.5", tmp_path)
    assert to == "sam"
    assert " started.\n" in text
    assert "Terminated at" not in text
    assert "Sender: LSF System" in (tmp_path / "out2").read_text()
    assert not mails(cluster)


def test_mail_of_the_ends_that_were_asked_for(cluster: Cluster, tmp_path: Path) -> None:
    [(_, text)] = run(cluster, "-Ne -o out4 'exit 3'", tmp_path)
    assert "Exited with exit code 3" in text
    assert cluster.wait_end(cluster.submit("-Ne true", cwd=tmp_path)) == ["DONE"]
    [(_, text)] = run(cluster, "-notify 'exit done' -u carol true", tmp_path)
    assert "Successfully completed" in text


def test_mail_of_what_runs_after_a_job(cluster: Cluster, tmp_path: Path) -> None:
    with (cluster.folder.conf / "lsf.conf").open("a") as file:
        file.write("LSB_POSTEXEC_SEND_MAIL=Y\n")
    assert cluster.run("badmin reconfig").returncode == 0
    [(to, text)] = run(cluster, "-u frank -o out6 -Ep 'echo cleaned; exit 4' true", tmp_path)
    assert to == "frank"
    assert "ended on host <host1> with 4.\nThe output (if any) follows:\n\ncleaned\n" in text


def test_mail_of_each_suspension(cluster: Cluster, tmp_path: Path) -> None:
    job = cluster.submit("-notify suspend -u dan -o out5 'touch began5; sleep 60'", cwd=tmp_path)
    wait_until((tmp_path / "began5").exists, 20, cluster.logs)
    for _ in range(2):
        cluster.run(f"bstop {job}")
        ((to, text),) = wait_until(lambda: mails(cluster), 20, "a mail of the suspension").items()
        assert to == "dan"
        assert " suspended.\n" in text
        cluster.run(f"bresume {job}")
        cluster.wait_for(job, "RUN")
    cluster.run(f"bkill {job}")
    cluster.wait_end(job)


def test_a_mailer_that_hangs_holds_up_no_job(cluster: Cluster, tmp_path: Path) -> None:
    mailer = cluster.folder.path.parent / "mailer"
    before = mailer.read_text()
    slow = mailer.with_name("slow")
    slow.write_text("#!/bin/sh\nsleep 30\n")
    slow.chmod(0o755)
    os.replace(slow, mailer)
    try:
        assert cluster.wait_end(cluster.submit("true", cwd=tmp_path), timeout=25) == ["DONE"]
        assert cluster.wait_end(cluster.submit("-o out3 true", cwd=tmp_path), timeout=25) == ["DONE"]
    finally:
        slow.write_text(before)
        slow.chmod(0o755)
        os.replace(slow, mailer)
