"""The same command lines through a server and through Python: the same bytes, exit statuses and asks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.caller import Caller
from tests.unit.cli.native.installed import WAS_PLAIN, Installed, Ran
from tests.unit.cli.scripted_master import Frame, ScriptedMaster

SUBMITTED = {"ok": {"job": 7, "queue": "q", "default": False, "notices": ["a notice"]}}
LIST: list[Frame] = [{"out": "JOBID é\n"}, {"err": "Job <9> is not found\n"}, {"exit": 3}]
SCRIPT = b"#!/bin/sh\n#BSUB -J named -n 2\necho $1\n"

LINES: list[tuple[list[Frame], list[str], bytes]] = [
    ([SUBMITTED], ["bsub", "true"], b""),
    ([SUBMITTED], ["bsub", "-n", "4", "-R", "span[hosts=1]", "-J", "a[1-9]", "sh", "-c", "echo $HOME  'x'"], b""),
    ([SUBMITTED], ["bsub", "-env", "none,A=1", "-o", "/dev/null", "-cwd", "sub", "true"], b""),
    ([SUBMITTED], ["bsub"], SCRIPT),
    ([SUBMITTED], ["bsub", "-q", "night"], SCRIPT * 2000),
    ([], ["bsub", "-J", "\udcff", "true"], b""),
    ([], ["bsub"], b""),
    ([], ["bsub"], b"\0"),
    ([], ["bsub", "-n"], b""),
    ([], ["bsub", "-nosuch", "true"], b""),
    ([], ["bsub", "-h"], b""),
    ([], ["bsub", "-I", "-K", "-V"], b""),
    ([{"refused": "Bad queue name"}], ["bsub", "-q", "x", "true"], b""),
    (LIST, ["bjobs"], b""),
    (LIST, ["bjobs", "-a", "-o", "jobid stat", "7", "9"], b""),
    ([{"out": "x" * 400_000}, {"exit": 0}], ["bjobs", "-l"], b""),
    ([{"out": "1\n"}, {"exit": 0}], ["bhosts", "-w"], b""),
    ([{"out": "1\n"}, {"exit": 0}], ["bqueues", "-noheader", "-o", "queue_name"], b""),
    ([{"out": "1\n"}, {"exit": 0}], ["lsid"], b""),
    ([], ["bjobs", "-Z"], b""),
    ([], ["bhist", "-f", "nosuch"], b""),
    ([{"out": "1\n"}, {"exit": 0}], ["bacct", "-f", "-"], b'"JOB_FINISH" "10.1" 1 7 x\n'),
    ([{"ok": {"results": []}}], ["bkill", "7"], b""),
    ([{"refused": "No"}], ["bkill", "-s", "USR1", "7"], b""),
    ([], ["bkill", "-l"], b""),
    ([{"ok": {"job": 7}}], ["bmod", "-n", "2", "7"], b""),
    ([{"refused": "No"}], ["bswitch", "night", "7"], b""),
    ([{"nonsense": 1}], ["bpost", "-d", "text", "7"], b""),
]


def answered(caller: Caller, plan: list[Frame], run: Any) -> tuple[Ran, list[Frame]]:
    """What a command line prints and asks."""
    with ScriptedMaster(caller.socket, plan) as master:
        ran = run()
    caller.socket.unlink()
    for ask in master.asks:
        ask.pop("uuid", None)
        ask.get("env", {}).pop("_", None)  # the program's path, says the shell
        ask["env"] = list(ask.get("env", {}).items())
    return ran, master.asks


@pytest.mark.parametrize(("plan", "line", "stdin"), LINES, ids=[ascii(" ".join(line[:4])) for _, line, _ in LINES])
def test_a_command_line_does_the_same_both_ways(
    installed: Installed, caller: Caller, plan: list[Frame], line: list[str], stdin: bytes
) -> None:
    environ = {**caller.environ, "TZ": "Asia/Tokyo", "A": "é", "LSB_DEFAULTPROJECT": "p"}
    how: dict[str, Any] = {"environ": environ, "stdin": stdin, "cwd": caller.folder, "umask": 0o027}
    plain = answered(caller, plan, lambda: installed.run(*line, plain=True, **how))
    native = answered(caller, plan, lambda: installed.served(*line, **how))
    assert native == plain
    assert bool(native[1]) == bool(plan)


HERE = [
    "cd link; exec {} true",
    "cd gone; rmdir ../gone; {} true; s=$?; mkdir ../gone; exit $s",
    "{{ read skipped; exec {}; }} < script",
    "{{ {} -Z; cat; }} < script",
    "{} true 2>&1 | cat",
    "umask 0; TZ=Asia/Tokyo LC_ALL=C {} true",
]


@pytest.mark.parametrize("line", HERE)
def test_what_a_shell_sets_counts(installed: Installed, caller: Caller, line: str) -> None:
    """Folder by its own name, a folder that is gone, a regular file as stdin at its position, a pipe that ends."""
    (caller.folder / "there").mkdir()
    (caller.folder / "link").symlink_to("there")
    (caller.folder / "gone").mkdir()
    (caller.folder / "script").write_bytes(b"skipped\n" + SCRIPT)
    environ = {**caller.environ, "LC_ALL": "C"} if "LC_ALL" in line else caller.environ
    installed.start(environ)

    def run(folder: Path) -> Ran:
        words = ["/bin/bash", "-c", line.format(folder / "bsub")]
        done = subprocess.run(words, env=caller.environ, cwd=caller.folder, capture_output=True, check=False, timeout=60)
        return Ran(done.returncode, done.stdout, done.stderr)

    native, plain = (
        answered(caller, [SUBMITTED], lambda folder=folder: run(folder)) for folder in (installed.native, installed.plain)
    )
    assert native == plain


@pytest.mark.parametrize(
    "locale",
    [
        {"LC_CTYPE": "C"},
        {"LC_CTYPE": "POSIX"},
        {"LC_CTYPE": ""},
        {"LC_CTYPE": "C.UTF-8"},
        {"LC_CTYPE": "C", "LC_ALL": "C"},
        {"LANG": "xx_YY"},
        {"LC_ALL": "C"},
    ],
    ids=str,
)
def test_a_job_gets_the_same_locale(installed: Installed, caller: Caller, locale: dict[str, str]) -> None:
    """Python sets LC_CTYPE where the locale is C's."""
    environ = {**caller.environ, **locale}
    plain = answered(caller, [SUBMITTED], lambda: installed.run("bsub", "true", environ=environ, plain=True))
    native = answered(caller, [SUBMITTED], lambda: installed.served("bsub", "true", environ=environ))
    assert native == plain
    installed.end()


@pytest.mark.parametrize(
    "line",
    [
        "ulimit -f 10; exec {} true",
        "ulimit -s 128; exec {} true",
        "ulimit -t 100; exec {} true",
        "exec {} true <&-",
        "exec {} true >&-",
        "nice {} true",
    ],
)
def test_other_limits_and_closed_files_are_no_servers(installed: Installed, caller: Caller, line: str) -> None:
    installed.start(caller.environ)
    words = ["/bin/bash", "-c", line.format(installed.native / "bsub")]
    done = subprocess.run(words, env=caller.environ, cwd=caller.folder, capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (77, b"plain\n")


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (["true"], {"LAVA_NATIVE": "N"}),
        (["true"], {"LSB_JOBID": "7"}),
        (["true"], {"LD_PRELOAD": "/nosuch/library.so"}),
        (["true"], {"LAVA_DEBUG": "1"}),
        (["-i", "/dev/stdin", "true"], {}),
        (["-hostfile", "/proc/self/fd/5", "true"], {}),
        (["-K", "true"], {}),
        (["-I", "true"], {}),
        (["-pack", "lines"], {}),
        (["x" * 130_000], {}),
    ],
)
def test_what_needs_a_process_of_its_own_is_plain(
    installed: Installed, caller: Caller, words: list[str], extra: dict[str, str]
) -> None:
    installed.start(caller.environ)
    ran = installed.run("bsub", *words, environ={**caller.environ, **extra}, cwd=caller.folder)
    assert (ran.status, ran.err[-6:]) == (77, b"plain\n")


@pytest.mark.parametrize("folder", ["/dev", "/proc/self"])
def test_where_names_are_others_in_each_process_it_is_plain(installed: Installed, caller: Caller, folder: str) -> None:
    installed.start(caller.environ)
    ran = installed.run("bsub", "-i", "fd/0", "true", environ=caller.environ, cwd=Path(folder))
    assert (ran.status, ran.err[-6:]) == (77, b"plain\n")


@pytest.mark.parametrize(
    "line",
    [
        "ln -s /dev/fd/5 named; exec {} -is named cat 5<<<x",
        "cd /; exec {} -is dev/fd/5 cat 5<<<x",
        r"exec {} 5<<<x <<<$'#BSUB -is /dev/fd/5\ncat'",
        "ln -s /dev/fd/5 named; exec {} -M named 5<<<host",
    ],
)
def test_a_file_that_is_another_in_each_process_is_opened_by_the_plain_command(
    installed: Installed, caller: Caller, line: str
) -> None:
    """Whatever names it."""
    installed.start(caller.environ)
    words = ["/bin/bash", "-c", line.format(installed.native / ("bacct" if "-M" in line else "bsub"))]
    done = subprocess.run(words, env=caller.environ, cwd=caller.folder, capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (77, b"plain\n")


def test_a_script_that_was_read_is_given_back(installed: Installed, caller: Caller) -> None:
    """Only what a script says itself shows that it needs a process of its own, once it is read."""
    script = b"#BSUB -K\n" + b"echo x\n" * 40_000
    installed.start(caller.environ)
    plain = installed.behind / "bsub"
    plain.write_text("#!/bin/sh\ncat\nexit 77\n")
    try:
        assert installed.run("bsub", environ=caller.environ, stdin=script) == (77, script, b"")
        path = caller.folder / "script"
        path.write_bytes(b"12" + script)
        with path.open("rb") as file:
            os.lseek(file.fileno(), 2, os.SEEK_SET)
            assert installed.run("bsub", environ=caller.environ, stdin=file) == (77, script, b"")
    finally:
        plain.write_text("#!/bin/sh\necho plain >&2\nexit 77\n")


def test_a_folder_as_standard_input_is_empty(installed: Installed, caller: Caller) -> None:
    """``bsub < FOLDER``: Python would not start."""
    installed.start(caller.environ)
    plain = installed.behind / "bsub"
    folder = os.open(caller.folder, os.O_RDONLY)
    try:
        words = [str(installed.native / "bsub")]
        done = subprocess.run(words, env=caller.environ, stdin=folder, capture_output=True, check=False)
        assert done.stderr in (b"No command is specified. Job not submitted.\n", b"plain\n")  # a server may be too busy
        plain.write_text("#!/bin/sh\ncat\nexit 77\n")
        environ = {**caller.environ, "LAVA_NATIVE": "N"}
        done = subprocess.run(words, env=environ, stdin=folder, capture_output=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (77, b"", b"")
    finally:
        os.close(folder)
        plain.write_text("#!/bin/sh\necho plain >&2\nexit 77\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_signal_ends_all_of_the_command(installed: Installed, caller: Caller, number: signal.Signals) -> None:
    """What waits for a script or for the master does nothing any more."""
    installed.start(caller.environ)
    results = []
    for folder in (installed.plain, installed.native):
        words = [str(folder / "bsub"), "true"]  # no master is there
        with subprocess.Popen(words, env=caller.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            said = process.stderr.readline()
            process.send_signal(number)
            # the end of the pipes is the end of whoever has them
            results.append((said, process.stdout.read(), process.stderr.read(), process.wait()))
    assert results[0] == results[1]
    with ScriptedMaster(caller.socket, [SUBMITTED]) as master:
        assert installed.served("bsub", "true", environ=caller.environ).status == 0
        assert len(master.asks) == 1


def test_a_signal_that_python_ignores_ends_nothing(installed: Installed, caller: Caller) -> None:
    installed.start(caller.environ)
    for folder in (installed.plain, installed.native):
        words = [str(folder / "bsub"), "true"]
        with subprocess.Popen(words, env=caller.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stderr is not None
            assert process.stderr.readline()  # it waits for a master
            process.send_signal(signal.SIGPIPE)
            with ScriptedMaster(caller.socket, [SUBMITTED]):
                assert process.wait(30) == 0
        caller.socket.unlink()


def test_a_reader_that_has_gone(installed: Installed, caller: Caller) -> None:
    installed.start(caller.environ)
    for folder in (installed.plain, installed.native):
        reading, writing = os.pipe()
        os.close(reading)
        with ScriptedMaster(caller.socket, [{"out": "text\n"}, {"exit": 0}]):
            done = subprocess.run([folder / "bjobs"], env=caller.environ, stdout=writing, stderr=subprocess.PIPE, check=False)
        caller.socket.unlink()
        os.close(writing)
        assert (done.returncode, done.stderr) == (141, b"")


TERMINAL = """
import fcntl, os, subprocess, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.environ.pop("LC_CTYPE", None)  # which Python has set
in_front, behind = (subprocess.call([sys.argv[1], "-V"], process_group=group, stderr=subprocess.DEVNULL) for group in (None, 0))
print(in_front, behind)
"""


def test_a_terminal_counts(installed: Installed, caller: Caller) -> None:
    """What is typed is read by the plain command; so is what runs behind another command of the terminal."""
    installed.start(caller.environ)
    ours, terminal = os.openpty()
    with os.fdopen(ours, "wb"), os.fdopen(terminal, "rb") as stdin:
        assert installed.run("bsub", environ=caller.environ, stdin=stdin) == WAS_PLAIN
        assert installed.served("bsub", "-V", environ=caller.environ, stdin=stdin).status == 0
        words = [sys.executable, "-c", TERMINAL, str(installed.native / "bsub")]
        done = subprocess.run(
            words, stdin=stdin, env=caller.environ, capture_output=True, text=True, start_new_session=True, check=False
        )
    assert done.stdout == "0 77\n", done.stderr


def test_its_name_is_that_of_the_file(installed: Installed, caller: Caller, tmp_path: Path) -> None:
    installed.start(caller.environ)
    (tmp_path / "mine").symlink_to(installed.native / "bsub")
    done = subprocess.run(
        ["bjobs", "-V"], executable=tmp_path / "mine", env=caller.environ, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr[:4]) == (0, "lava")
