"""How many /bin/true parts a second a starter and its shepherds alone start and report: ``starter_floor.py [N [K [ROUNDS]]]``.

N parts at K parallel slots; a slot is filled again as soon as its part is gone. One JSON line for each figure.
"""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from agent.starter.wire.frames import FrameReader, pack  # noqa: E402

ROUNDS = 3


def ticks(pid: int) -> float:
    """CPU seconds of a process and its reaped children."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def one_round(sock: socket.socket, reader: FrameReader, seq: int, count: int, slots: int) -> float:
    """Parts a second."""
    user = {"name": "me", "uid": os.getuid(), "gid": os.getgid(), "groups": sorted(set(os.getgroups()))}
    limits = {"NOFILE": [4096, -1], "CORE": [0, -1], "STACK": [8 << 20, -1]}
    env = {f"LSB_VARIABLE_{i}": "x" * 30 for i in range(40)} | {"PATH": "/usr/bin:/bin"}
    template = {"user": user, "attempt": 1, "argv": ["/bin/true"], "env": env, "cwd": "/tmp", "umask": 18}
    template["rlimits"] = limits
    sent = done = 0
    waiting: list[str] = []
    begin = time.monotonic()
    while done < count:
        room = min(slots - (sent - done), count - sent)
        if room > 0:
            new = range(sent, sent + room)
            parts = [{"t": "t", "uid": f"r{seq}-{n}", "key": n, "title": f"1[{n}]"} for n in new]
            sent += room
            seq += 1
            sock.sendall(pack({"do": "start", "seq": seq, "templates": {"t": template}, "parts": parts}))
            if waiting:
                sock.sendall(pack({"do": "forget", "uids": waiting}))
                waiting = []
        frames: list[dict[str, Any]] = reader.feed(sock.recv(1 << 20))
        for frame in frames:
            for report in frame.get("reports", ()):
                if report["is"] == "ended" and report.get("gone"):
                    done += 1
                    waiting.append(report["uid"])
                elif report["is"] in ("refused", "lost"):
                    raise SystemExit(f"{report}")
    took = time.monotonic() - begin
    sock.sendall(pack({"do": "forget", "uids": waiting}))
    return count / took


def main() -> None:
    """Start a starter of its own, run the rounds, print."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    slots = int(sys.argv[2]) if len(sys.argv) > 2 else 64
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else ROUNDS
    with tempfile.TemporaryDirectory(prefix="lava-floor-") as folder:
        path = f"{folder}/starter.sock"
        entry = ROOT / "agent" / "starter" / "__main__.py"
        args = ["--host", "bench", "--dir", f"{folder}/spool", "--socket", path, "--pidfile", f"{folder}/pid"]
        starter = subprocess.Popen([sys.executable, "-I", "-S", str(entry), *args])
        try:
            while not os.path.exists(path):
                time.sleep(0.01)
            sock = socket.socket(socket.AF_UNIX)
            sock.connect(path)
            reader = FrameReader()
            sock.sendall(pack({"do": "hello"}))
            one_round(sock, reader, 1, slots * 2, slots)
            before = ticks(starter.pid)
            rates = [one_round(sock, reader, 1_000_000 * (r + 1), count, slots) for r in range(rounds)]
            cpu = (ticks(starter.pid) - before) / (count * rounds) * 1000
        finally:
            starter.terminate()
            starter.wait()
    line = {"metric": "starter_floor", "value": round(statistics.median(rates), 1), "unit": "parts/s", "n": rounds}
    line |= {"min": round(min(rates), 1), "max": round(max(rates), 1), "note": f"{count} x /bin/true, {slots} slots"}
    print(json.dumps(line))
    line = {"metric": "starter_cpu", "value": round(cpu, 3), "unit": "ms/part", "n": rounds, "note": "starter alone"}
    print(json.dumps(line))


if __name__ == "__main__":
    main()
