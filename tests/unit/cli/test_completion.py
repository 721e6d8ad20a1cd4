"""What shells complete: the options that commands read, and nothing that they refuse."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from cli import completion, manpages
from proto.commands import COMMANDS, INSTALLED


def completed(*words: str) -> list[str]:
    """What bash offers for the last of these words; without a cluster there are no jobs, queues and hosts."""
    line = " ".join(f"'{word}'" for word in words)
    code = f'{completion.bash()}\nCOMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _lava; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_options_are_those_that_commands_take() -> None:
    assert completed("bjobs", "-nohe") == ["-noheader"]
    assert completed("bkill", "-s") == ["-s", "-sla", "-stat"]
    assert "-cleanup" not in completed("bkill", "-")  # refused
    assert {"-q", "-gpu", "-V"} <= set(completed("/some/where/bsub", "-"))
    assert completed("lava", "com") == ["completion"]
    assert completed("lava", "completion", "") == ["bash", "zsh", "fish"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_reads_its_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed here")
    assert completion.main([shell]) == 0
    script = capsys.readouterr().out
    done = subprocess.run([shell, "-n"], input=script, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert all(name in script for name in INSTALLED)


def test_another_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert completion.main(["csh"]) == 255
    assert capsys.readouterr().err == "lava completion: say bash, zsh or fish\n"


@pytest.mark.parametrize("command", INSTALLED)
def test_a_page_names_the_command_and_its_options(command: str) -> None:
    page = manpages.page(command)
    assert page.startswith(f".TH {command.upper()} 1 ")
    plain = page.replace("\\-", "-").replace("\\(aq", "'")
    assert f"{command} - {COMMANDS[command].help}\n" in plain
    refused = COMMANDS[command].refused.split()
    assert all(f"[-{name}" in plain for name in COMMANDS[command].flags.split() if name not in refused)
    assert not any(line.startswith(("'", ". ")) for line in page.splitlines())


def test_pages_are_written_and_a_bad_folder_is_named(tmp_path: object, capsys: pytest.CaptureFixture[str]) -> None:
    assert manpages.main([f"{tmp_path}/man1"]) == 0
    assert manpages.main(["/dev/null/man1"]) == 255
    assert manpages.main([]) == 255
    assert "lava man: /dev/null" in capsys.readouterr().err
