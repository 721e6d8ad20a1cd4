"""Captured outputs of a running OpenLava (captures.jsonl), and a cluster configured as the captured one was.

Captures are facts to hold lava against: what they say is compared after ``neutral`` took out what must differ between two
runs (ids, dates, loads, pids, host facts).
"""

from __future__ import annotations

import fcntl
import functools
import itertools
import json
import os
import pwd
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple, TextIO

from tests.support.live.cluster import Cluster
from tests.support.wait import SLOW, wait_until

CAPTURES = {row["name"]: row for row in map(json.loads, Path(__file__).with_name("captures.jsonl").read_text().splitlines())}
CONF = Path(__file__).with_name("captured_conf")
ADDED = re.compile(
    r"\n ?MEMORY USAGE:\n[^\n]*\n|\n ?CPU USAGE:\n[^\n]*\n[^\n]*\n|\n TASK USAGE:\n(?: [^\n]*\n)+"
    r"|\n RESOURCE REQUIREMENT DETAILS:\n(?: [CE][^\n]*\n| {21}[^\n]*\n)+"
    r"|[^\n]*: (?:Output kept in|Completed <exit>; TERM_OWNER)[^\n]*\n(?: {21}[^\n]*\n)*"
)
"""What LSF 10.1 and lava say at length beyond the peer."""
HOSTS = ("ol1", "ol2", "ol3")
USERS = ("alice", "bob", "openlava")
MADE = "made by the tests of lava"
LOCK = Path(tempfile.gettempdir()) / "lava-test-users.lock"
OUTPUTS = "/shared/proj/jobs/outs"
LONG_DATE = re.compile(r"\b[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?: \d{4})?")
SHORT_DATE = re.compile(r"\b(?!Fri)[A-Z][a-z]{2} [ \d]\d \d\d:\d\d(?::\d\d)?")
AN_ID = re.compile(r"(^|[Jj]ob(?:ID)? <?|^ended {7})(\d+)((?:\[\d+\])?)( *)", re.MULTILINE)
NUMBER = re.compile(r" +[0-9.:]+(?:e\+\d+)?[GMK%]?(?= |$)", re.MULTILINE)
BUSY = {"10": "98", "20": "99"}
"""Run queues over which a queue's jobs wait and stop: here no other work of the machine is to hold up the walk."""


class Ran(NamedTuple):
    """What a command did."""

    out: str
    err: str
    status: int


class Captured:
    """A cluster like the captured one; use it in a ``with``. ``ids``: id of a capture -> the id that the job has here."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.outputs = folder / "outs"
        self.ids: dict[str, str] = {}
        self._back: dict[str, str] = {}
        self.ran: dict[str, Ran] = {}
        hour = (time.gmtime().tm_hour + 12) % 24
        self.far = f"{hour}:"
        conf = folder / "conf"
        shutil.copytree(CONF, conf)
        site = conf / "lsf.conf"
        site.write_text(site.read_text().replace("OUTS", str(self.outputs)))
        queues = conf / "lsb.queues"
        busy = f"r1m          = {BUSY['10']}/{BUSY['20']}\n"
        queues.write_text(queues.read_text().replace("2:00-2:05", f"{hour}:00-{hour}:05").replace("r1m          = 10/20\n", busy))
        assert busy in queues.read_text()
        self.cluster = Cluster(folder / "cluster", hosts=3, options=("--conf", str(conf)))

    def __enter__(self) -> Captured:
        make_users()
        self.folder.chmod(0o755)
        self.outputs.mkdir()
        self.outputs.chmod(0o777)
        self._make_sleep()
        self._make_mail()
        self.cluster.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.cluster.__exit__()

    def _make_sleep(self) -> None:
        """A ``sleep`` for the captured commands that ends when the walk says so instead of after a minute."""
        (self.outputs / "bin").mkdir()
        file = self.outputs / "bin" / "sleep"
        file.write_text(
            "#!/bin/sh\ncase $1:${LSB_JOBINDEX:-0} in [34]0:0) ;;\n"
            f"60:[12]) until [ -e {self.outputs}/woken ]; do /bin/sleep 0.1; done ;;\n"
            '*) exec /bin/sleep "$@" ;; esac\n'
        )
        file.chmod(0o755)

    def _make_mail(self) -> None:
        """The mail program: each mail is a file."""
        file, mail = self.outputs / "mailprog", f"{self.outputs}/mail.$$"
        file.write_text(f'#!/bin/sh\n{{ echo "ARGV: $*"; cat; }} > {mail}.part\nmv {mail}.part {mail}\n')
        file.chmod(0o755)

    def read(self, name: str, pattern: str) -> None:
        """Take the file of this pattern that has the words of the capture's subject for the capture's report."""
        subject = re.search(r"^Subject: Job \d+: (.*)$", CAPTURES[name]["stdout"], re.MULTILINE)
        assert subject is not None
        words = [subject[1].split()[0], subject[1].split()[-1].rstrip(".")]
        found: list[str] = []

        def there() -> bool:
            texts = [file.read_text() for file in self.outputs.glob(pattern) if file.suffix != ".part"]
            found[:] = [text for text in texts if re.search(f"^Subject: .*{words[0]}.* {words[1]}[.]?$", text, re.MULTILINE)]
            return bool(found)

        wait_until(there, 60, f"{pattern} with {words}")
        self.ran[name] = Ran(found[0], "", 0)

    def run(self, command: str, user: str = "alice") -> Ran:
        """A line of the shell as a user, in the user's home, with little in its environment."""
        who = pwd.getpwnam(user)
        names = ("PATH", "LSF_ENVDIR", "LSF_BINDIR", "LSF_SERVERDIR", "LAVA_SLOW", "LAVA_NATIVE")
        environ = {name: self.cluster.environ[name] for name in names if name in self.cluster.environ}
        environ["PATH"] = f"{self.outputs}/bin:{environ['PATH']}"
        environ |= {"HOME": who.pw_dir, "USER": user, "LOGNAME": user, "LANG": "C", "TZ": "UTC", "SHELL": "/bin/sh"}
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            capture_output=True,
            text=True,
            timeout=90 * SLOW,
            env=environ,
            user=who.pw_uid,
            group=who.pw_gid,
            extra_groups=[],
            cwd=who.pw_dir,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        return Ran(done.stdout, done.stderr, done.returncode)

    def play(self, name: str, user: str = "alice") -> None:
        """Run the command of a capture; what it did is kept in ``ran`` in the words of the capture."""
        command = CAPTURES[name]["command"].strip().replace(OUTPUTS, str(self.outputs))
        for mine, here in self.ids.items():
            command = re.sub(rf"(?<=[ ']){mine}(?=['\[ ]|$)", here, command)
        ran = self.run(self._in_time(command), user)
        for mine, here in zip(_job_ids(CAPTURES[name]["stdout"]), _job_ids(ran.out), strict=False):
            if command.startswith(("bsub", "LSB_", "bgadd")):
                self._name(mine, here)
        self.ran[name] = ran

    def submit(self, mine: str, words: str, user: str = "alice") -> None:
        """bsub of a job that stands for the one with this id in the captures."""
        ran = self.run(f"bsub {self._in_time(words)}", user)
        assert ran.status == 0, (words, ran)
        self._name(mine, _job_ids(ran.out)[0])

    def _name(self, mine: str, here: str) -> None:
        self.ids[mine], self._back[here] = here, mine

    def only(self, *hosts: str) -> None:
        """Open these hosts, close the others."""
        for host in HOSTS:
            assert self.run(f"badmin {'hopen' if host in hosts else 'hclose'} {host}", "openlava").status == 0

    def wait(self, mine: str, *states: str) -> None:
        """Until every element of a job is in one of the states."""
        here = re.sub(r"^\d+", lambda found: self.ids.get(found[0], found[0]), mine)
        now: list[str] = []

        def there() -> bool:
            now[:] = self.run(f"bjobs -a -noheader -u all -o stat '{here}'").out.split()
            return bool(now) and all(state in states for state in now)

        wait_until(there, 60, lambda: f"job {mine} to be {states}: {now}")

    def wait_for_words(self, job: str, words: str) -> None:
        """Until a job has written them."""
        wait_until(lambda: words in self.run(f"bpeek {job}").out, 60, f"job {job} to write {words}")

    def neutral(self, name: str) -> tuple[Ran, Ran]:
        """(the capture, what happened here), both without what must differ."""
        row, ran = {"stderr": "", "exit": 0, **CAPTURES[name]}, self.ran[name]
        windows = (f"{self.far}00-{self.far}05", "2:00-2:05")

        def here_to_mine(text: str) -> str:
            text = text.replace(str(self.outputs), OUTPUTS).replace(*windows)
            for mine, here in BUSY.items():
                text = text.replace(f" {here}.0 ", f" {mine}.0 ")
            return AN_ID.sub(lambda found: _renamed(found, self._back), text)

        captured = Ran(plain(name, row["stdout"]), plain(name, row["stderr"]), row["exit"])
        here = Ran(plain(name, here_to_mine(ran.out)), plain(name, here_to_mine(ran.err)), ran.status)
        if name == "bhist-a":  # its jobs were more than those that the walk has by then
            common = set(_heads(captured.out)) & set(_heads(here.out))
            captured, here = (Ran(_rows(one.out, common), *one[1:]) for one in (captured, here))
        return captured, here

    def _in_time(self, command: str) -> str:
        """Times of the captures as times that lie as far ahead today."""
        command = re.sub(r"\b23:5(?=[08]\b)", lambda _: self.far + "5", command)
        for given, days in (("12:24:23:59", 60), ("12:31:23:59", 67), ("12:31:23:00", 60), ("12:01:01:00", 30)):
            command = command.replace(given, time.strftime("%m:%d:%H:%M", time.gmtime(time.time() + days * 86400)))
        return command


def plain(name: str, text: str) -> str:
    """Dates made equal; for loads and histories numbers too; paragraphs of -l without the places where they are cut."""
    words = name.split("-")
    if words[0] == "report":
        text = _of_every_report(text)
    if "(usage text follows)" in text:
        text = text[: text.index("(usage")] + "Usage"
    text = re.sub(r"^ *[Uu]sage: .*", "Usage", text, flags=re.DOTALL | re.MULTILINE)
    if "-l" in name or "UF" in name or name == "bhist-b":
        text = _unfolded(text)
    text = SHORT_DATE.sub("Nov 20 00:00", LONG_DATE.sub("Fri Nov 20 00:00:00", text))
    text = re.sub(r"\d\d/\d\d-\d\d:\d\d:\d\d", "11/20-00:00:00", text)
    if words[0] == "lsload" or name in ("bjobs-W", "lshosts-R", "lshosts-l", "bhosts-l-closed"):
        text = re.sub(r" +-$", " #", NUMBER.sub(" #", text), flags=re.MULTILINE)
    if words[0] == "bhist":
        text = re.sub(r"((?: +\d+){7}) *$", _times, text, flags=re.MULTILINE)
    if words[0] in ("lsload", "lsplace"):
        text = re.sub(r"^ol\d ", "olN ", text, flags=re.MULTILINE)
    if words[0] == "bhosts":
        text = re.sub(r"^(ol3 .*?-) +[12] ", r"\1 1 ", text, flags=re.MULTILINE)
    if words[0] == "badmin":
        text = re.sub(r"\d s\n? *erver hosts|\d \n? *server hosts", "N server hosts", text)
    return _elements_sorted(text) if words[0] == "bjobs" else text


def _times(found: re.Match[str]) -> str:
    """The seconds in each state and their sum, which each may be rounded."""
    *each, total = map(int, found[1].split())
    return " TIMES" if abs(sum(each) - total) <= 3 else f" {found[1]} is not their sum"


def _of_every_report(text: str) -> str:
    """A report without what LSF 10.1 adds: the cluster, more dates, the reason, more of what was used.

    And without what the shell of the peer's job file wrote.
    """
    text = text.replace("OpenLava System", "LSF System").replace("User defined signal 2\n", "")
    text = re.sub(r"^Subject: Job \d+:", "Subject: Job N:", text, flags=re.MULTILINE)
    text = re.sub(rf" in cluster <\w+>|(?<=>) at {LONG_DATE.pattern}|(?<=>)\.$", "", text, flags=re.MULTILINE)
    text = re.sub(r"^(ARGV|From|Terminated at|TERM_\w+:).*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"^ +(CPU time|Max Memory|Max Swap|Max Processes) .*\n", r"\1\n", text, flags=re.MULTILINE)
    return re.sub(r"\n+", "\n", re.sub(r"^    [A-Z].* :.*\n", "", text, flags=re.MULTILINE))


def _unfolded(text: str) -> str:
    text = ADDED.sub("", text.replace("the OpenLava system", "the batch system"))
    text = re.sub(r"^ ?ADMIN ACTION (MESSAGE|COMMENT)", "ADMIN ACTION COMMENT", text, flags=re.MULTILINE)
    for own in ("MEM:", "PGID:"):
        text = text.replace("\n" + " " * 21 + own, "\n" + own)
    text = text.replace("\n" + " " * 21, "").replace("Job Id <", "Job <")
    text = re.sub(r"(Pid|PGID:|PIDs:|MEM:|SWAP:)[ <\d]*", r"\1 ", text)
    text = re.sub(r";  NTHREAD: \d+", "", text)
    rows = (_without_blanks(row) if re.match(r"Job <|[A-Z][a-z]{2} [A-Z]", row) else row for row in text.split("\n"))
    return re.sub(r"\n\n+", "\n\n", "\n".join(rows))


def _without_blanks(row: str) -> str:
    """A paragraph without its blanks (a cut eats one), and with all dates the same."""
    return LONG_DATE.sub("DATE", row).replace(" ", "")


def _elements_sorted(text: str) -> str:
    """Elements of one array stand in the order in which they ended, which is chance where they end at once."""
    if not text.startswith("JOBID"):
        return text
    found: list[str] = []
    for _, rows in itertools.groupby(text.split("\n"), lambda row: row.partition(" ")[0] or row):
        found += sorted(rows)
    return "\n".join(found)


def _heads(text: str) -> list[str]:
    return [row.split()[0] for row in text.splitlines() if row[:1].isdigit()]


def _rows(text: str, heads: set[str]) -> str:
    return "\n".join(sorted(row for row in text.split("\n") if not row[:1].isdigit() or row.split()[0] in heads))


def _renamed(found: re.Match[str], back: dict[str, str]) -> str:
    """An id of this run as that of the captures; at the head of a row the cell keeps its width."""
    before, here, index, blanks = found.groups()
    mine = back.get(here, here)
    if index is not None and len(blanks) > 1:
        blanks = " " * (len(here) + len(blanks) - len(mine))
    return f"{before}{mine}{index or ''}{blanks or ''}"


def _job_ids(text: str) -> list[str]:
    return re.findall(r"^Job <(\d+)>", text, re.MULTILINE)


def make_users() -> None:
    """Those that are missing. One process at a time: two useradd at once give one name two numbers."""
    with LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _users_in_use()
        known = {entry.pw_name for entry in pwd.getpwall()}
        for name in USERS:
            if name not in known:
                command = ["useradd", "-m", "-s", "/bin/sh", "-c", MADE, name]
                subprocess.run(command, check=True, capture_output=True)


@functools.cache
def _users_in_use() -> TextIO:
    """A lock, held while this process lives: other test sessions of this machine leave the users alone."""
    held = LOCK.with_suffix(".used").open("w")
    fcntl.flock(held, fcntl.LOCK_SH)
    return held


def remove_users() -> None:
    """Remove the users that were made here, unless another process still is one of them."""
    if os.geteuid() or not LOCK.exists():  # only root makes them, and the lock may be root's
        return
    with LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            fcntl.flock(_users_in_use(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        for found in pwd.getpwall():
            if found.pw_gecos == MADE:
                subprocess.run(["userdel", "-r", "-f", found.pw_name], check=False, capture_output=True)


def can_be_others() -> bool:
    """Whether this machine lets the tests be the users of the captures."""
    known = {entry.pw_name for entry in pwd.getpwall()}
    return os.geteuid() == 0 and (set(USERS) <= known or shutil.which("useradd") is not None)
