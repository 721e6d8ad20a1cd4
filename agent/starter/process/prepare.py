"""Prepares a part on disk, as the user: working folder, secrets, input and output files, job file.

Rule: every failure is a Refused with one line that names the file; files that were opened are closed then.
"""

from __future__ import annotations

import contextlib
import os
import stat

from agent.starter.process.spec import Spec
from agent.starter.protocol.part import JobFile
from agent.starter.system.foreign_folder import why_foreign
from agent.starter.system.stdio import Refused, code_of, open_input, open_output, spooled_input

SECRET_BYTES = 64 << 10


class Files:
    """The open files of a part."""

    __slots__ = ("jobfile", "stderr", "stdin", "stdout")

    def __init__(self) -> None:
        self.stdin = -1
        self.stdout = -1
        self.stderr = -1
        self.jobfile: str | None = None

    def close(self) -> None:
        """Close the files; standard error may be the same as standard output."""
        for fd in {self.stdin, self.stdout, self.stderr}:
            if fd >= 0:
                os.close(fd)
        self.stdin = self.stdout = self.stderr = -1

    def remove_jobfile(self) -> None:
        """Remove the job file, if it is to be removed with the part."""
        if self.jobfile:
            with contextlib.suppress(OSError):
                os.unlink(self.jobfile)
            self.jobfile = None


def make_folder(spec: Spec) -> bool:
    """Make the part's working folder where the part says so; whether it was not there before. What fails shows in entering it."""
    path = spec.part.cwd.rstrip("/")
    if not spec.part.make_cwd or not path:
        return False
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.mkdir(path, 0o700)
    except (OSError, ValueError):
        return False
    return True


def enter_folder(spec: Spec) -> str:
    """Change to the part's working folder, or the first fallback that can be entered, and return it; Refused: none can.

    One that was to be made, and that another user has put there, is refused: the job would find that user's links in it.
    One that this host cannot reach is no reason for a fallback: the folder is there, but not here.
    """
    cwd, why = spec.part.cwd, ""
    make_folder(spec)
    for folder in (cwd, *spec.part.cwd_else):
        try:
            os.chdir(folder)
            if spec.part.make_cwd and folder is cwd and (why_not := why_foreign(folder)):
                raise Refused("cwd", f"working folder {cwd}: {why_not}")
            return folder
        except (OSError, ValueError) as e:
            why = why or (e.strerror or str(e) if isinstance(e, OSError) else str(e))
            if (code := code_of(e, "cwd")) != "cwd":
                raise Refused(code, f"working folder {cwd}: {why}") from None
    raise Refused("cwd", f"working folder {cwd}: {why}")


def read_secrets(spec: Spec) -> dict[str, str]:
    """Variables whose values are in files that only the user can read, without the last newline; Refused if a file is invalid."""
    return {name: _secret(name, path) for name, path in spec.part.secrets.items()}


def _secret(name: str, path: str) -> str:
    try:
        # O_NONBLOCK: a named pipe of another user must not block this process.
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        try:
            found = os.fstat(fd)
            data = os.read(fd, SECRET_BYTES + 1)
        finally:
            os.close(fd)
    except (OSError, ValueError) as e:
        raise Refused(code_of(e, "secret"), f"secret {name}: {path}: {getattr(e, 'strerror', None) or e}") from None
    why = ""
    if not stat.S_ISREG(found.st_mode):
        why = "not a plain file"
    elif found.st_uid not in (os.getuid(), 0):
        why = "it belongs to another user"
    elif found.st_mode & 0o077:
        why = "others can read it (chmod 600)"
    elif len(data) > SECRET_BYTES:
        why = f"longer than {SECRET_BYTES} bytes"
    elif b"\0" in data:
        why = "a NUL character in it"
    if why:
        raise Refused("secret", f"secret {name}: {path}: {why}")
    return os.fsdecode(data.removesuffix(b"\n"))


def open_files(spec: Spec, with_output: bool) -> Files:
    """Write the job file and open input and output of a part; Refused when that fails.

    ``with_output`` is False where the output of the ranks goes to another host.
    """
    files, part = Files(), spec.part
    try:
        if part.jobfile is not None:
            _write_jobfile(part.jobfile, part.jobfile.text or part.script, files)
        files.stdin = open_input(part.stdin) if part.input is None else spooled_input(part.input)
        if with_output:
            stdout, stderr = part.stdout, part.stderr
            files.stdout = open_output(stdout)
            same = stderr is None or (stdout is not None and stderr.path == stdout.path)
            files.stderr = files.stdout if same else open_output(stderr)
        else:
            files.stdout = files.stderr = open_output(None)
    except Refused:
        files.close()
        files.remove_jobfile()
        raise
    return files


def _write_jobfile(jobfile: JobFile, text: str, files: Files) -> None:
    path = jobfile.path
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        # O_EXCL: in a folder that others can write to, the name may be a link to another file.
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            view = memoryview(text.encode("utf-8", "surrogateescape"))
            while view:
                view = view[os.write(fd, view) :]
            os.fchmod(fd, jobfile.mode)
        finally:
            os.close(fd)
    except (OSError, ValueError) as e:
        raise Refused("jobfile", f"job file {path}: {getattr(e, 'strerror', None) or e}") from None
    if jobfile.remove:
        files.jobfile = path
