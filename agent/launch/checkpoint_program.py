"""Checkpoints by a site's programs, ``echkpnt.NAME`` and ``erestart.NAME``: run as a program of its own, as the job's user.

``make`` has the site's program write ``gen-N.tmp``, then adds the manifest, syncs and renames it, and removes older generations;
``restart`` has the other program make ready what a restart runs; ``run`` becomes that command. Each takes one JSON object.

Rule: a generation that is there is whole; whatever goes wrong is one line on standard error and leaves older generations alone.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import re
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from typing import IO

from agent.starter.part import generations
from agent.starter.part.generations import MANIFEST

COMMAND_FILE = ".restart_cmd"
"""What erestart writes into the generation: ``LSB_RESTART_CMD=command``."""
SPARE = 1.2
"""A checkpoint is begun where so many times the size of the last one is free."""
_ANY = re.compile(r"gen-([0-9]{1,9})(\..*)?")
_CHUNK = 4 << 20
_MOST_COMMAND = 1 << 20


class CheckpointError(Exception):
    """Why there is no checkpoint, or no restart from it: one line."""


class Programs:
    """What the agent asks for. Times in seconds."""

    def __init__(self, asked: dict[str, object]) -> None:
        self.folder = str(asked["folder"])
        """The job's own checkpoint folder."""
        self.method = str(asked["method"])
        self.where = str(asked["where"])
        """The folder of the site's programs."""
        self.timeout = float(str(asked.get("timeout") or 600))
        self.keep_output = bool(asked.get("keep_output"))
        self.kept = max(1, int(str(asked.get("kept") or 2)))
        self.group = int(str(asked.get("group") or 0))
        self.kill = bool(asked.get("kill"))

    def path(self, kind: str) -> str:
        """The program of a kind, echkpnt or erestart; CheckpointError where it cannot be run."""
        if not os.path.isabs(self.where):
            where = f"LSB_ECHKPNT_METHOD_DIR {self.where} is no absolute path" if self.where else "LSF_SERVERDIR is not set"
            raise CheckpointError(f"checkpoint method {self.method}: {where}")
        path = os.path.join(self.where, f"{kind}.{self.method}")
        if not os.path.isfile(path):
            raise CheckpointError(f"checkpoint method {self.method}: {path} is not on this host")
        if not os.access(path, os.X_OK):
            raise CheckpointError(f"checkpoint method {self.method}: {path} cannot be executed")
        return path

    def call(self, kind: str, arguments: Sequence[str], generation: str) -> None:
        """Run it for a generation and wait; CheckpointError where it does not end well in time."""
        path = self.path(kind)
        name = os.path.basename(path)
        env = {**os.environ, "LSB_CHKPNT_DIR": generation, "LAVA_CKPT_DIR": self.folder, "LSB_ECHKPNT_METHOD": self.method}
        with self._output(kind, "out") as out, self._output(kind, "err") as err:
            try:
                process = subprocess.Popen(
                    [path, *arguments], env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
                )
            except OSError as e:
                raise CheckpointError(f"{path}: {e.strerror}") from None
        try:
            code = process.wait(self.timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise CheckpointError(f"{name} did not end within {self.timeout:.0f} seconds, and was killed") from None
        if code:
            raise CheckpointError(f"{name} {f'was killed by signal {-code}' if code < 0 else f'ended with exit code {code}'}")

    def _output(self, kind: str, stream: str) -> IO[bytes]:
        path = os.path.join(self.folder, f"{kind}.{stream}") if self.keep_output else os.devnull
        return open(path, "ab", buffering=0)


def make(asked: Programs) -> tuple[int, int]:
    """(number, bytes) of a new generation; CheckpointError or OSError: there is none, and nothing of it is left."""
    program = asked.path("echkpnt")
    whole = generations.numbers(asked.folder)
    number = 1 + max((int(match[1]) for name in os.listdir(asked.folder) if (match := _ANY.fullmatch(name))), default=0)
    for name in os.listdir(asked.folder):
        if _ANY.fullmatch(name) and name.endswith(".tmp"):
            shutil.rmtree(os.path.join(asked.folder, name), ignore_errors=True)
    _check_space(asked.folder, whole)
    path = os.path.join(asked.folder, f"gen-{number}")
    unfinished = path + ".tmp"
    os.mkdir(unfinished)
    try:
        asked.call("echkpnt", [*(["-k"] if asked.kill else []), "-d", unfinished, str(asked.group)], unfinished)
        size = _commit(asked, number, unfinished, path, os.path.basename(program))
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    for old in generations.numbers(asked.folder)[asked.kept :]:
        shutil.rmtree(os.path.join(asked.folder, f"gen-{old}"), ignore_errors=True)
    return number, size


def _check_space(folder: str, whole: list[int]) -> None:
    """CheckpointError where there is too little room for another one like the last."""
    if not whole:
        return
    size = generations.listed_size(os.path.join(folder, f"gen-{whole[0]}"))
    found = os.statvfs(folder)
    free = found.f_bavail * found.f_frsize
    if free < size * SPARE:
        mb = 1 << 20
        need = f"{size * SPARE / mb:.0f} MB are needed, {SPARE} times generation {whole[0]}"
        raise CheckpointError(f"{folder} has {free / mb:.0f} MB free, and {need}")


def _commit(asked: Programs, number: int, unfinished: str, path: str, name: str) -> int:
    """Write the manifest and rename the folder; the bytes of its files."""
    if os.path.lexists(os.path.join(unfinished, MANIFEST)):
        raise CheckpointError(f"{name} wrote a file {MANIFEST}, which is lava's own")
    files = {name: {"size": size, "sha256": digest} for name, size, digest in _synced(unfinished)}
    if not files:
        raise CheckpointError(f"{name} ended well and wrote no file into {unfinished}")
    made = {
        "generation": number,
        "files": files,
        "method": asked.method,
        "machine": platform.machine(),
        "host": os.environ.get("LAVA_HOST", ""),
        "at": int(time.time()),
    }
    with open(os.path.join(unfinished, MANIFEST), "w", encoding="utf-8") as file:
        json.dump(made, file)
        file.flush()
        os.fsync(file.fileno())
    for folder, _, _ in os.walk(unfinished):
        _sync_folder(folder)
    os.rename(unfinished, path)
    _sync_folder(asked.folder)
    return sum(int(str(facts["size"])) for facts in files.values())


def _synced(unfinished: str) -> Iterator[tuple[str, int, str]]:
    """(path in the generation, size, SHA-256) of each plain file, which is on disk then. Links are kept unchecked."""
    for folder, _, names in os.walk(unfinished):
        for name in sorted(names):
            path = os.path.join(folder, name)
            if name == COMMAND_FILE or not stat.S_ISREG(os.lstat(path).st_mode):
                continue
            total, size = hashlib.sha256(), 0
            with open(path, "rb", buffering=0) as file:
                while chunk := file.read(_CHUNK):
                    total.update(chunk)
                    size += len(chunk)
                os.fsync(file.fileno())
            yield os.path.relpath(path, unfinished), size, total.hexdigest()


def _sync_folder(path: str) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def restart(asked: Programs, again: bool) -> None:
    """Before the job starts: its programs are there; if it starts ``again``, erestart makes the newest generation ready.

    CheckpointError where the job must not start. Without a generation it starts from the beginning.
    """
    asked.path("echkpnt")
    asked.path("erestart")
    if not again:
        return
    newest = next(iter(generations.numbers(asked.folder)), 0)
    if not newest:
        return
    path = os.path.join(asked.folder, f"gen-{newest}")
    made = generations.manifest(path)
    for key, here, what in (("method", asked.method, "by method"), ("machine", platform.machine(), "on a host of type")):
        there = made.get(key, "app" if key == "method" else here)
        if there != here:
            raise CheckpointError(f"checkpoint generation {newest} was made {what} {there}, not {here}")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(path, COMMAND_FILE))
    asked.call("erestart", [path], path)
    restart_command(asked.folder)


def restart_command(folder: str) -> str:
    """The command that erestart left for the newest generation; "": none, the job's own command runs."""
    newest = next(iter(generations.numbers(folder)), 0)
    path = os.path.join(folder, f"gen-{newest}", COMMAND_FILE)
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


def run(folder: str, argv: list[str]) -> None:
    """Become what the restart runs: erestart's command by the shell, else ``argv``."""
    command = restart_command(folder)
    if command:
        os.execv("/bin/sh", ["/bin/sh", "-c", command])
    os.execvp(argv[0], argv)


def main(words: list[str]) -> int:
    """``make JSON``, ``restart JSON``, ``run FOLDER WORD …``; the exit status."""
    what, text, *rest = words
    folder = ""
    try:
        if what == "run":
            run(text, rest)
        asked = json.loads(text)
        folder = str(asked["folder"])
        if what == "make":
            number, size = make(Programs(asked))
            say(f"{number} {size}")
        else:
            restart(Programs(asked), bool(asked.get("again")))
    except (CheckpointError, ValueError) as e:
        say(str(e))
        return 1
    except OSError as e:
        say(f"{e.filename or folder}: {e.strerror or e}")
        return 1
    return 0


def say(line: str) -> None:
    """One line to whoever waits: the shepherd, by the file that LAVA_SAY numbers, else standard error."""
    fd = os.environ.get("LAVA_SAY", "2")
    os.write(int(fd) if fd.isdecimal() else 2, " ".join(line.split()).encode("utf-8", "surrogateescape") + b"\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
