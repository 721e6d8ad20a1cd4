"""The files that users of LSF source."""

import subprocess
from pathlib import Path

import pytest

from cli.local.shells import cshrc_lsf, profile_lsf, write_profiles

PLACES = {"LSF_ENVDIR": "/o'ne/my conf", "LSF_BINDIR": "/opt/la va/bin"}


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_a_shell_sources_the_profile_twice_and_has_the_commands_once(tmp_path: Path, shell: str) -> None:
    profile = tmp_path / "profile.lsf"
    profile.write_text(profile_lsf(PLACES))
    script = 'set -eu; . "$1"; . "$1"; /usr/bin/env | /bin/grep -E "^(PATH|LSF_)"'
    run = subprocess.run(
        [shell, "-c", script, shell, str(profile)], capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"}, check=True
    )
    assert sorted(run.stdout.splitlines()) == [
        "LSF_BINDIR=/opt/la va/bin",
        "LSF_ENVDIR=/o'ne/my conf",
        "PATH=/opt/la va/bin:/usr/bin:/bin",
    ]


def test_a_shell_without_a_path_gets_one(tmp_path: Path) -> None:
    (tmp_path / "profile.lsf").write_text(profile_lsf(PLACES))
    script = 'unset PATH; set -u; . "$1"; echo "$PATH"'
    run = subprocess.run(
        ["/bin/sh", "-c", script, "sh", str(tmp_path / "profile.lsf")], capture_output=True, text=True, check=True
    )
    assert run.stdout == "/opt/la va/bin\n"


def test_csh_words_survive_quotes_and_its_history() -> None:
    text = cshrc_lsf({"LSF_ENVDIR": "/o'ne/wow!", "LSF_BINDIR": "/b"})
    assert "setenv LSF_ENVDIR '/o'\\''ne/wow\\!'\n" in text
    assert text.splitlines()[-1] == 'if ( $status != 0 ) setenv PATH "${LSF_BINDIR}:${PATH}"'


def test_a_site_keeps_its_own_profile(tmp_path: Path) -> None:
    (tmp_path / "profile.lsf").write_text("mine\n")
    write_profiles(tmp_path, PLACES)
    assert (tmp_path / "profile.lsf").read_text() == "mine\n"
    assert (tmp_path / "cshrc.lsf").read_text() == cshrc_lsf(PLACES)
