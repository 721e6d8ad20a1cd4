"""Every option of every command that submits or changes jobs, with values that no one should give: each is taken or refused
in one line (or LSF's two, or a line and the usage), never with a traceback. The master of this test refuses all that reaches it.
"""

from __future__ import annotations

import re

import pytest

from tests.unit.cli.caller import Caller, Ran
from tests.unit.cli.scripted_master import ScriptedMaster

REFUSAL = "No, says the master"
WORDS = {
    "bsub": ["true"],
    "bmod": ["12"],
    "bkill": ["12"],
    "bstop": ["12"],
    "bresume": ["12"],
    "brequeue": ["12"],
    "bswitch": ["normal", "12"],
    "btop": ["12"],
    "bbot": ["12", "2"],
    "bmig": ["12"],
    "bchkpnt": ["12"],
    "brestart": ["/nowhere", "12"],
    "bresize": ["12"],
    "brun": ["12"],
    "bwait": [],
    "bpost": ["12"],
    "bread": ["12"],
    "bstatus": ["12"],
    "bgadd": ["/g"],
    "bgdel": ["/g"],
    "bgmod": ["/g"],
    "bpeek": ["12"],
    "lsrun": ["true"],
    "lsgrun": ["true"],
    "lsplace": [],
    "brsvadd": [],
    "brsvdel": ["r"],
    "brsvmod": ["r"],
    "brsvs": [],
    "bjgroup": [],
}
VALUES = [
    "",
    " ",
    "-1",
    "0",
    "9" * 40,
    "x" * 70_000,
    "ü",
    "\u2028",
    "[",
    "((((",
    "1:2:3:4:5",
    "%",
    "-",
    ":",
    "=",
    "~",
    "'",
    '"',
    "\udcff",
]
NO_WORDS = ["-", "--", "-\u2028", "-ü", "-99", "--gpu", "-=", "-" * 5000, "-nosuchoption", "\udcff", "x" * 70_000]
NO_JOBS = ["", " ", "0x1", "-", "1[", "1[]", "1[x]", "9" * 40, "1[9" + "9" * 40 + "]", "ü", "1\n2", "x" * 9000]


@pytest.fixture
def master(caller: Caller):
    with ScriptedMaster(caller.socket, [{"refused": REFUSAL, "exit": 255}]) as one:
        yield one


def options_of(caller: Caller, command: str, *verb: str) -> list[tuple[str, bool]]:
    """(name, whether it takes a value) as the usage has them."""
    usage = " ".join(caller.run(command, *verb, "-h").err.split())
    return [(name, bool(value)) for name, value in re.findall(r"\[-([\w+-]+)( value)?\]", usage) if name not in ("h", "V")]


def check(ran: Ran, words: list[str]) -> None:
    """One line, LSF's two, or one and the usage; 255, and nothing on standard output."""
    said = "" if ran.err.startswith("Usage: ") else ran.err.partition("\nUsage: ")[0].rstrip("\n")
    lines = said.split("\n")
    shown = [word[:60] for word in words]
    assert ran.status == 255, (shown, ran.status, ran.err[:300])
    assert ran.out == "", shown
    assert said or ran.err.startswith("Usage: "), shown
    assert len(lines) == 1 or (len(lines) == 2 and lines[1].startswith(". Job not ")), (shown, ran.err[:300])
    assert len(said) < 500, (shown, said[:300])
    assert "internal error" not in said, shown


@pytest.mark.parametrize("command", sorted(WORDS))
def test_any_value_of_any_option(caller: Caller, master: ScriptedMaster, command: str) -> None:
    found = options_of(caller, command)
    assert found or command in ("bwait",), "the usage names no option"
    for name, valued in found:
        for value in VALUES if valued else [""]:
            words = [f"-{name}", value, *WORDS[command]] if valued else [f"-{name}", *WORDS[command]]
            if name == "l" and command == "bkill":
                continue  # a list, as in LSF with exit status 255
            check(caller.run(command, *words, LAVA_DEBUG="1"), words)


@pytest.mark.parametrize("command", sorted(WORDS))
def test_a_value_that_is_missing(caller: Caller, master: ScriptedMaster, command: str) -> None:
    for name, valued in options_of(caller, command):
        if valued:
            check(caller.run(command, f"-{name}", LAVA_DEBUG="1"), [f"-{name}"])


@pytest.mark.parametrize("command", sorted(WORDS))
@pytest.mark.parametrize("word", NO_WORDS)
def test_a_word_that_is_nothing(caller: Caller, master: ScriptedMaster, command: str, word: str) -> None:
    others = [] if command == "brsvdel" else WORDS[command]
    check(caller.run(command, word, *others, LAVA_DEBUG="1"), [word])


@pytest.mark.parametrize("job", NO_JOBS)
@pytest.mark.parametrize("command", ["bmod", "bkill", "bstop", "bresume", "btop", "brun", "bpost", "bpeek", "bmig", "brequeue"])
def test_a_job_that_is_none(caller: Caller, master: ScriptedMaster, command: str, job: str) -> None:
    options = ["-J", "n"] if command == "bmod" else []
    ran = caller.run(command, *options, job, LAVA_DEBUG="1")
    if "\n" not in job:
        check(ran, [job])
    assert ran.status == 255
