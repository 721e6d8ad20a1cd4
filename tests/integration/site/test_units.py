"""The units of docs/systemd: systemd understands them, and the daemons take the options that they give."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

UNITS = Path(__file__).resolve().parents[3] / "docs" / "systemd"
NEWER = ("RestartSteps", "RestartMaxDelaySec")
"""What systemd before 254 passes over."""
needs_analyze = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not here")


def lines(name: str) -> dict[str, list[str]]:
    """The settings of a unit."""
    found: dict[str, list[str]] = {}
    for line in re.sub(r"\\\n\s*", "", (UNITS / name).read_text()).splitlines():
        if "=" in line and not line.startswith("#"):
            key, _, value = line.partition("=")
            found.setdefault(key, []).append(value)
    return found


@needs_analyze
@pytest.mark.parametrize("name", ["lavad.service", "lava-agent.service", "lava-starter.service", "lava-web.service"])
def test_systemd_understands_every_line(tmp_path: Path, name: str) -> None:
    for unit in UNITS.glob("*.service"):
        # the programs are those of this test's Python, as the site's are not here
        text = unit.read_text().replace("/opt/lava/.venv/bin/python", "/usr/bin/env")
        (tmp_path / unit.name).write_text(text.replace("Documentation=file:/opt/lava/docs/operations.md\n", ""))
    done = subprocess.run(["systemd-analyze", "verify", str(tmp_path / name)], capture_output=True, text=True, timeout=60)
    said = [line for line in done.stderr.splitlines() if str(tmp_path) in line or line.startswith(name)]
    assert not [line for line in said if not any(f"'{key}'" in line for key in NEWER)]


@needs_analyze
def test_lavad_is_exposed_to_little(tmp_path: Path) -> None:
    """On systemd's own scale, where 10 is a service of root without any restriction."""
    command = ["systemd-analyze", "security", "--offline=yes", "--threshold=25", str(UNITS / "lavad.service")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if "unrecognized option" in done.stderr:
        pytest.skip("this systemd-analyze does not look at units that are not loaded")
    assert done.returncode == 0, done.stdout[-300:]


def test_lavads_folders_are_its_own_and_roots_daemons_have_none_that_systemd_would_give_away() -> None:
    lavad, agent, starter = (lines(f"{name}.service") for name in ("lavad", "lava-agent", "lava-starter"))
    assert lavad["User"] == ["lavad"]
    own = {*lavad["RuntimeDirectory"], *lavad["StateDirectory"]}
    assert own == {"lava-master"}
    for unit in (agent, starter):
        assert "User" not in unit
        assert "RuntimeDirectory" not in unit
        assert "StateDirectory" not in unit
        assert not any(f"/run/{name}/" in unit["ExecStart"][0] or f"/var/lib/{name}/" in unit["ExecStart"][0] for name in own)


@pytest.mark.parametrize("name", ["lavad.service", "lava-agent.service", "lava-starter.service"])
def test_none_of_them_is_ever_given_up(name: str) -> None:
    unit = lines(name)
    assert unit["StartLimitIntervalSec"] == ["0"]
    assert unit["Restart"] == ["always"]
    assert unit["Type"] == ["notify"]
    assert int(unit["OOMScoreAdjust"][0]) < 0


@pytest.mark.parametrize("name", ["lavad.service", "lava-agent.service", "lava-starter.service", "lava-web.service"])
def test_the_daemon_takes_the_options_of_its_unit(name: str) -> None:
    """With an option more that it does not know: the first that it complains of is that one."""
    root = UNITS.parents[1]
    words = lines(name)["ExecStart"][0].replace("/opt/lava/agent", str(root / "agent")).replace("%l", "h1").split()[1:]
    words = [word.replace("${LAVA_MASTERS}", "m1:1").replace("${LAVA_ADDRESS}", "127.0.0.1") for word in words if word != "-I"]
    environ = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run([sys.executable, *words, "--no-such"], capture_output=True, text=True, timeout=60, env=environ)
    assert done.returncode == 2
    assert "unrecognized arguments: --no-such" in done.stderr
