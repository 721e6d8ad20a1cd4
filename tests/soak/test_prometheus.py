"""A real Prometheus reads lavad's page: it understands every metric, the rules are right, and an alert fires when hosts are lost.

Debian's package is used where it is installed, else it is fetched into a cache and unpacked there.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.live.cluster import Cluster
from tests.support.live.wheels import cache_folder
from tests.support.wait import wait_until

SAMPLES = Path(__file__).parents[2] / "docs" / "monitoring"


@pytest.fixture(scope="module")
def programs() -> Path:
    """The folder of prometheus and promtool."""
    if found := shutil.which("promtool"):
        return Path(found).parent
    folder = cache_folder() / "prometheus"
    if not (folder / "usr/bin/promtool").exists():
        folder.mkdir(parents=True, exist_ok=True)
        line = "apt-get download -q prometheus && dpkg -x prometheus_*.deb ."
        done = subprocess.run(["/bin/sh", "-c", line], cwd=folder, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode:
            pytest.skip(f"there is no prometheus, and it cannot be fetched: {done.stderr.strip().splitlines()[-1:]}")
    return folder / "usr/bin"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def _prometheus(programs: Path, folder: Path, target: str) -> Iterator[str]:
    """Its address, while it asks the target every second."""
    text = (
        (SAMPLES / "prometheus.yml").read_text().replace("127.0.0.1:9109", target).replace("15s", "1s\n  evaluation_interval: 1s")
    )
    (folder / "prometheus.yml").write_text(text)
    rules = (SAMPLES / "lava.rules.yml").read_text()
    (folder / "lava.rules.yml").write_text(rules.replace("for: 5m", "for: 2s").replace("for: 2m", "for: 2s"))
    address = f"127.0.0.1:{_free_port()}"
    words = [f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data", f"--web.listen-address={address}"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen([programs / "prometheus", *words], stdout=log, stderr=log)
    try:
        yield address
    finally:
        process.terminate()
        process.wait(30)


def _ask(address: str, path: str, **words: str) -> Any:
    url = f"http://{address}/api/v1/{path}?{urllib.parse.urlencode(words)}"
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]
    except OSError:
        return None


def _value(address: str, query: str) -> float | None:
    found = _ask(address, "query", query=query)
    return float(found["result"][0]["value"][1]) if found and found["result"] else None


def _firing(address: str) -> set[str]:
    found = _ask(address, "alerts")
    return {alert["labels"]["alertname"] for alert in found["alerts"] if alert["state"] == "firing"} if found else set()


def test_promtool_finds_the_rules_right(programs: Path) -> None:
    done = subprocess.run(
        [programs / "promtool", "check", "rules", SAMPLES / "lava.rules.yml"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.cluster(hosts=2, conf={"lsf.conf": "LAVA_METRICS_ADDRESS=127.0.0.1:@PORT@\n"})
def test_jobs_are_counted_and_lost_hosts_are_told(programs: Path, own_cluster: Cluster, tmp_path: Path) -> None:
    cluster = own_cluster
    page = (cluster.folder.conf / "lsf.conf").read_text().partition("LAVA_METRICS_ADDRESS=")[2].split()[0]
    for _ in range(3):
        cluster.wait_end(cluster.submit("true"))
    cluster.wait_end(cluster.submit("false"))
    with _prometheus(programs, tmp_path, page) as address:
        wait_until(lambda: _value(address, 'sum(lava_jobs_ended_total{state="DONE"})') == 3, 60, "three jobs that are done")
        assert _value(address, 'sum(lava_jobs_ended_total{state="EXIT"})') == 1
        assert _value(address, 'sum(lava_hosts{state="ok"})') == 2
        wait_until(lambda: not _firing(address), 30, lambda: f"no alert; {_firing(address)}")
        cluster.kill_host("host2")
        wait_until(lambda: "LavaHostsUnavailable" in _firing(address), 120, lambda: f"the alert; {_firing(address)}")
        cluster.kill("lavad")
        wait_until(lambda: "LavaMasterDown" in _firing(address), 120, lambda: f"the alert; {_firing(address)}")
    cluster.up()
