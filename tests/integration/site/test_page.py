"""The page of a real cluster: signed in by its address, a job from submission to its output, events, and a page that dies."""

from __future__ import annotations

import http.client
import json
import os
import signal
import stat
import urllib.parse
from pathlib import Path
from typing import Any

from tests.support.live.cluster import Cluster
from tests.support.wait import wait_until


class Browser:
    """Requests with a session, or with a token."""

    def __init__(self, address: str, headers: dict[str, str]) -> None:
        self.place = urllib.parse.urlsplit(address).netloc
        self.headers = headers

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any, http.client.HTTPResponse]:
        link = http.client.HTTPConnection(self.place, timeout=60)
        given = self.headers | ({"Content-Type": "application/json"} if body is not None else {})
        link.request(method, path, None if body is None else json.dumps(body), given)
        answer = link.getresponse()
        text = answer.read().decode()
        link.close()
        is_json = "json" in (answer.headers.get("Content-Type") or "")
        return answer.status, json.loads(text) if is_json else text, answer


def test_a_cluster_with_a_page(tmp_path: Path) -> None:
    with Cluster(tmp_path / "c", hosts=1, slots=2, options=("--web",)) as cluster:
        file = cluster.folder.run / "web.url"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        url = file.read_text().strip()
        nobody = Browser(url, {})
        status, _, answer = nobody.ask("GET", url.partition(nobody.place)[2])
        assert status == 303
        signed_in = Browser(url, {"Cookie": str(answer.headers["Set-Cookie"]).partition(";")[0]})
        csrf = signed_in.ask("GET", "/api/v1/session")[1]["csrf"]
        signed_in.headers["X-CSRF-Token"] = csrf
        events = http.client.HTTPConnection(nobody.place, timeout=60)
        events.request("GET", "/api/v1/events", headers=signed_in.headers)
        stream = events.getresponse()
        heard: list[str] = []
        while not any('"version"' in line for line in heard):
            heard.append(stream.fp.readline().decode())
        status, made, _ = signed_in.ask("POST", "/api/v1/jobs", {"command": "echo from the page", "options": {"n": 1}})
        assert status == 201, made
        while not any('"JobFinished"' in line and f'"id":"{made["id"]}"' in line for line in heard):
            heard.append(stream.fp.readline().decode())
        events.close()
        program = Browser(url, {"Authorization": f"Bearer {cluster.run('lava token').stdout.strip()}"})
        told = program.ask("GET", f"/api/v1/jobs/{made['id']}")[1]
        assert told["row"]["state"] == "DONE"
        wait_until(
            lambda: "from the page" in program.ask("GET", f"/api/v1/jobs/{made['id']}/output")[1], 30, "the output of the job"
        )
        assert program.ask("GET", "/api/v1/overview")[1]["counts"]["run"] == 0
        cluster.run("lava token")
        mine = cluster.run("lava token --list").stdout.splitlines()
        assert [line.split()[2] for line in mine] == ["KIND", "link", "session", "api", "api"]
        called_back = next(line.split()[0] for line in mine[3:])
        other = cluster.run("lava token").stdout.strip()
        assert cluster.run(f"lava token --revoke {called_back}").stdout == "1 token serves no more\n"
        assert cluster.run("lava token --revoke none", ok=False).returncode == 1
        cluster.kill("lavad")
        cluster.up()
        assert program.ask("GET", "/api/v1/overview")[0] == 401
        program.headers["Authorization"] = f"Bearer {other}"
        assert program.ask("GET", "/api/v1/overview")[0] == 200
        assert '"ask":"revoketokens"' in (cluster.folder.log / "lava.audit").read_text()
        assert cluster.run("lava web").stdout.startswith(url.partition("/login")[0])
        pid = int((cluster.folder.run / "web.pid").read_text())
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: f"web {nobody.place.partition(':')[2]} - down" in _status(cluster), 30, "lava status to say so")
        cluster.up()
        assert program.ask("GET", "/healthz")[0] == 200


def _status(cluster: Cluster) -> str:
    return cluster.run("lava status").stdout
