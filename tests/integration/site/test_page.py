"""The page of a real cluster: signed in by its address, a job from submission to its output, events, and a page that dies."""

from __future__ import annotations

import getpass
import http.client
import json
import os
import resource
import signal
import ssl
import stat
import urllib.parse
from pathlib import Path
from typing import Any

from cli.local import certs
from tests.support.live.cluster import Cluster
from tests.support.live.webpage import Proxy, page
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
        wait_until(lambda: program.ask("GET", "/api/v1/overview")[0] == 401, 30, "the page to ask for the token again")
        program.headers["Authorization"] = f"Bearer {other}"
        assert program.ask("GET", "/api/v1/overview")[0] == 200
        assert '"ask":"revoketokens"' in (cluster.folder.log / "lava.audit").read_text()
        assert cluster.run("lava web").stdout.startswith(url.partition("/login")[0])
        _behind_a_proxy(cluster, tmp_path)
        pid = int((cluster.folder.run / "web.pid").read_text())
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: f"web {nobody.place.partition(':')[2]} - down" in _status(cluster), 30, "lava status to say so")
        assert cluster.run("lava web", ok=False).stderr.startswith(f"lava web: no page runs at http://{nobody.place}: ")
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 1000), hard))
        try:
            cluster.up()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert program.ask("GET", "/healthz")[0] == 200
        again = cluster.lava("up", "--dir", str(cluster.folder.path), "--web", "1")
        assert f"--web 1 changes nothing: the page runs at port {nobody.place.partition(':')[2]} " in again.stderr
        pid = int((cluster.folder.run / "web.pid").read_text())
        assert resource.prlimit(pid, resource.RLIMIT_NOFILE) == (hard, hard), "a quarter of them is for connections"


def _behind_a_proxy(cluster: Cluster, folder: Path) -> None:
    """The proxy's user is signed in; who comes past the proxy, with its headers too, is nobody."""
    certs.make(folder / "tls", "c1", ["127.0.0.1"], [])
    secret = "a secret of the proxy alone"
    (folder / "secret").write_text(secret)
    with (cluster.folder.conf / "lsf.conf").open("a") as file:
        file.write(f"\nLAVA_WEB_USER={getpass.getuser()}\n")
    cluster.run("badmin reconfig -f")
    parameters = f"LAVA_WEB_PROXIES=127.0.0.1\nLAVA_WEB_PROXY_SECRET_FILE={folder}/secret\nLAVA_WEB_URL=https://127.0.0.1"
    with page(cluster, folder / "behind", parameters) as url, Proxy(url, "daemon", secret, folder / "tls") as proxy:
        context = ssl.create_default_context(cafile=folder / "tls/ca.crt")
        link = http.client.HTTPSConnection("127.0.0.1", proxy.port, timeout=60, context=context)
        # what comes from outside in the proxy's headers is dropped
        link.request("GET", "/api/v1/session", headers={"X-Remote-User": "root", "X-Lava-Proxy-Secret": "x"})
        answer = link.getresponse()
        session = json.loads(answer.read())
        assert (session["user"], session["is_admin"]) == ("daemon", False)
        assert "max-age" in (answer.headers["Strict-Transport-Security"] or "")
        for csrf, status in (("", 403), (session["csrf"], 201)):
            body = json.dumps({"command": "true", "options": {"H": True}})
            link.request("POST", "/api/v1/jobs", body, {"Content-Type": "application/json", "X-CSRF-Token": csrf})
            answer = link.getresponse()
            made = json.loads(answer.read())
            assert answer.status == status, made
        link.close()
        assert cluster.run(f"bjobs -noheader -u all -o user {made['id']}").stdout == "daemon\n"
        for headers, status in (
            ({"X-Remote-User": "daemon"}, 403),
            ({"X-Remote-User": "daemon", "X-Lava-Proxy-Secret": "a guess of the proxy's secret"}, 403),
            ({}, 401),
        ):
            assert Browser(url, headers).ask("GET", "/api/v1/session")[0] == status
    # to another address the headers say nothing
    with page(cluster, folder / "elsewhere", parameters.replace("=127.0.0.1", "=127.0.0.9", 1)) as url:
        trusted = {"X-Remote-User": "daemon", "X-Lava-Proxy-Secret": secret}
        assert Browser(url, trusted).ask("GET", "/api/v1/session")[0] == 401


def _status(cluster: Cluster) -> str:
    return cluster.run("lava status").stdout
