"""Secrets on a real cluster: the job has the value, and nothing of lava's keeps or shows it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.live.cluster import VENV, Cluster

VALUE = "s3cr3t-Xq81Zp"


pytestmark = pytest.mark.cluster(hosts=2)


def kept(folder: Path) -> list[Path]:
    """Files below the folder that have the value in them."""
    return [path for path in folder.rglob("*") if path.is_file() and VALUE.encode() in path.read_bytes()]


def test_the_job_has_the_value_and_nobody_else(cluster: Cluster, tmp_path: Path) -> None:
    """No database, log or listing has the value of a secret, not even where the submitter has it exported."""
    home = tmp_path / "home"
    home.mkdir()
    cluster.environ["HOME"] = str(home)
    cluster.environ["TOKEN"] = VALUE + "-exported"
    cluster.run("lava secret set TOKEN", stdin=VALUE + "\n")
    assert cluster.run("lava secret ls").stdout == "TOKEN\n"
    assert (home / ".lava/secrets/TOKEN").stat().st_mode & 0o777 == 0o600
    right = f'test "${{#TOKEN}}" = {len(VALUE)} && expr "$TOKEN" : s3cr3t- >/dev/null'
    alone = cluster.submit(f"-secret TOKEN -o {tmp_path}/out '{right}'")
    gang = cluster.submit(f"-secret TOKEN=~/.lava/secrets/TOKEN -a mpi -n 2 -R 'span[ptile=1]' '{right}'")
    assert cluster.wait_end(alone) == ["DONE"], (tmp_path / "out").read_text()
    assert cluster.wait_end(gang) == ["DONE"]
    shown = "".join(cluster.run(f"{command} -l {alone} {gang}").stdout for command in ("bjobs", "bhist", "bacct"))
    assert VALUE not in shown
    assert kept(cluster.folder.path) == []


def test_a_file_that_others_can_read_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "key").write_text(VALUE)
    (tmp_path / "key").chmod(0o644)
    job = cluster.submit(f"-secret KEY={tmp_path}/key true")
    assert cluster.wait_end(job) == ["EXIT"]
    assert "secret KEY: " in cluster.run(f"bhist -l {job}").stdout
    assert cluster.run("bsub -secret 1 true", ok=False).stderr.startswith("1: Bad name of a secret")


def test_bad_words_of_lava_secret(tmp_path: Path) -> None:
    for words in (["set"], ["set", "a/b"], ["rm", "NONE"], ["what"]):
        done = subprocess.run(
            [str(VENV / "lava"), "secret", *words],
            capture_output=True,
            text=True,
            timeout=30,
            input="x",
            check=False,
            env={**os.environ, "HOME": str(tmp_path)},
        )
        assert done.returncode == 1
        assert done.stderr.startswith("lava secret: ")
        assert done.stderr.count("\n") == 1
    assert not list(tmp_path.rglob("*b"))
