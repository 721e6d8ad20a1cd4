"""Checkpoints by a site's programs, ``echkpnt.NAME`` and ``erestart.NAME``, with LSF's protocol."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
from collections.abc import Sequence
from typing import IO, NoReturn

from agent.launch.checkpointing.asked import Asked, CheckpointError
from agent.launch.checkpointing.writing import COMMAND_FILE, check_like, make, newest
from agent.starter.process import tasks

_MOST_COMMAND = 1 << 20


def write(asked: Asked) -> tuple[int, int]:
    """(number, bytes) of a new generation that echkpnt wrote."""
    name = os.path.basename(program(asked, "echkpnt"))

    def run(unfinished: str) -> dict[str, object]:
        _call(asked, "echkpnt", [*(["-k"] if asked.kill else []), "-d", unfinished, str(asked.group)], unfinished)
        return {}

    return make(asked, name, run)


def restart(asked: Asked) -> None:
    """Before the job starts: its programs are there; if it starts again, erestart makes the newest generation ready.

    CheckpointError where the job must not start. Without a generation it starts from the beginning.
    """
    program(asked, "echkpnt")
    program(asked, "erestart")
    number = newest(asked.folder) if asked.again else 0
    if not number:
        return
    path = os.path.join(asked.folder, f"gen-{number}")
    check_like(asked, number)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(path, COMMAND_FILE))
    _call(asked, "erestart", [path], path)
    restart_command(asked.folder)


def run(asked: Asked, argv: list[str]) -> NoReturn:
    """Become what the restart runs: erestart's command by the shell, else ``argv``."""
    command = restart_command(asked.folder)
    if command:
        os.execv("/bin/sh", ["/bin/sh", "-c", command])
    tasks.become(argv)


def program(asked: Asked, kind: str) -> str:
    """The program of a kind, echkpnt or erestart; CheckpointError where it cannot be run."""
    method, where = asked.method, asked.where
    if not os.path.isabs(where):
        why = f"LSB_ECHKPNT_METHOD_DIR {where} is no absolute path" if where else "LSF_SERVERDIR is not set"
        raise CheckpointError(f"checkpoint method {method}: {why}")
    path = os.path.join(where, f"{kind}.{method}")
    if not os.path.isfile(path):
        raise CheckpointError(f"checkpoint method {method}: {path} is not on this host")
    if not os.access(path, os.X_OK):
        raise CheckpointError(f"checkpoint method {method}: {path} cannot be executed")
    return path


def _call(asked: Asked, kind: str, arguments: Sequence[str], generation: str) -> None:
    """Run it for a generation and wait; CheckpointError where it does not end well in time."""
    path = program(asked, kind)
    name = os.path.basename(path)
    env = {**os.environ, "LSB_CHKPNT_DIR": generation, "LAVA_CKPT_DIR": asked.folder, "LSB_ECHKPNT_METHOD": asked.method}
    with _output(asked, kind, "out") as out, _output(asked, kind, "err") as err:
        try:
            process = subprocess.Popen(
                [path, *arguments], env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
            )
        except OSError as e:
            raise CheckpointError(f"{path}: {e.strerror}") from None
    try:
        code = process.wait(asked.timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise CheckpointError(f"{name} did not end within {asked.timeout:.0f} seconds, and was killed") from None
    if code:
        raise CheckpointError(f"{name} {f'was killed by signal {-code}' if code < 0 else f'ended with exit code {code}'}")


def _output(asked: Asked, kind: str, stream: str) -> IO[bytes]:
    path = os.path.join(asked.folder, f"{kind}.{stream}") if asked.keep_output else os.devnull
    return open(path, "ab", buffering=0)


def restart_command(folder: str) -> str:
    """The command that erestart left for the newest generation; "": none, the job's own command runs."""
    path = os.path.join(folder, f"gen-{newest(folder)}", COMMAND_FILE)
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read(_MOST_COMMAND).splitlines()
    except FileNotFoundError:
        return ""
    for line in lines:
        name, given, command = line.strip().partition("=")
        if name.strip() == "LSB_RESTART_CMD" and given and command.strip():
            return _unquoted(command.strip())
    raise CheckpointError(f"{path} has no line LSB_RESTART_CMD=command")


def _unquoted(command: str) -> str:
    """A command that stands in quotes as a whole, without them."""
    if command[0] in "\"'":
        with contextlib.suppress(ValueError):
            words = shlex.split(command)
            if len(words) == 1:
                return words[0]
    return command
