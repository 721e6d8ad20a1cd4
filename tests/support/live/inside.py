"""A script run as a job of a test's cluster, and what it said."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.live.cluster import Cluster
from tests.support.wait import wait_until

REPORT = "\n" + "-" * 60 + "\nSender: LSF System"


def submit_script(
    cluster: Cluster, folder: Path, script: str, hosts: str = "host1 host2", slots: int = 1, options: str = ""
) -> tuple[int, Path]:
    """(job, its output file) of a script on so many slots of each of the hosts."""
    folder.chmod(0o755)
    (folder / "job.sh").write_text(script)
    output = folder / "job.out"
    count = len(hosts.split()) * slots
    words = f'-n {count} -R "span[ptile={slots}]" -m "{hosts}" {options} -oo {output} bash {folder}/job.sh'
    return cluster.submit(words, cwd=folder), output


def said(output: Path) -> str:
    """What the job wrote, without the report behind it; the report is waited for."""
    wait_until(lambda: output.exists() and REPORT in output.read_text(), 30, "the report")
    return output.read_text().partition(REPORT)[0].rstrip("\n") + "\n"


def run_script(
    cluster: Cluster,
    folder: Path,
    script: str,
    hosts: str = "host1 host2",
    slots: int = 1,
    options: str = "",
    timeout: float = 60,
) -> tuple[int, str]:
    """(exit code, output) of a script run as a job."""
    job, output = submit_script(cluster, folder, script, hosts, slots, options)
    cluster.wait_end(job, timeout)
    code = cluster.run(f"bjobs -a -noheader -o exit_code {job}").stdout.strip()
    return int(code) if code.isdigit() else 0, said(output)


def pids_in(folder: Path, pattern: str, count: int) -> list[int]:
    """The process ids that the job's tasks wrote into files, when there are so many."""

    def find() -> list[int]:
        texts = [path.read_text().strip() for path in folder.glob(pattern)]
        found = [int(text) for text in texts if text]
        return found if len(found) == count else []

    return wait_until(find, 30, f"{count} process ids in {folder}/{pattern}")


def environment_of(pid: int) -> dict[str, str]:
    """The environment that a process was started with."""
    pieces = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return dict(os.fsdecode(piece).partition("=")[::2] for piece in pieces if piece)
