"""The page of a cluster of ``lava up``: its process, and the address that signs its caller in."""

from __future__ import annotations

import os

from cli.local.daemons import find_pid, start
from cli.local.folder import Folder
from cli.local.probe import ask_once, link

LONGEST = 12 * 3600
"""Seconds for which the address signs in."""


def start_page(folder: Folder, port: int) -> int:
    """Start it unless it runs; its port. Raises DaemonFailed, OSError."""
    if not find_pid(folder, "web"):
        words = ["--conf", str(folder.conf), "--run", str(folder.run), "--address", f"127.0.0.1:{port}"]
        words += ["--pidfile", str(folder.pid_file("web")), "--address-file", str(folder.web_address)]
        start(folder, "web", "web.main", [*words, "--log", str(folder.log / "web.log")])
    return int(folder.web_address.read_text().rpartition(":")[2])


def write_url(folder: Folder) -> str:
    """The file with the address that signs the caller in, readable by nobody else; "" where no master answers."""
    ask = {"ask": "token", "kind": "link", "seconds": LONGEST}
    for path in sorted(folder.run.glob("lavad*.sock")):
        for answer in ask_once(path, ask):
            if "ok" in answer:
                url = link(folder.web_address.read_text().strip(), answer["ok"]["token"])
                target = folder.run / "web.url"
                new = folder.run / "web.url.new"
                with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
                    file.write(url + "\n")
                new.replace(target)
                return url
    return ""
