"""What is explained: all that lava gives has an entry, each is found by what users read, and docs/reasons.md is the table."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from lavad.core.lang.states import TermReason
from lavad.core.site.pend_reason import PendReason
from lavad.queries.explain import table, waiting
from lavad.queries.explain.entry import Kind
from lavad.queries.explain.main import main

ROOT = Path(__file__).parents[5]
_PLACE = "x"
_TOLD = re.compile(r"[A-Za-z<>-]{4,}")


def _sources(*rooms: str) -> list[Path]:
    return [path for room in rooms for path in sorted((ROOT / room).rglob("*.py")) if "explain" not in path.parts]


def _text(node: ast.expr) -> str:
    """A literal text with something in its places; "" for one that is made elsewhere."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else _PLACE for part in node.values)
    return ""


def _calls(path: Path, *names: str) -> list[ast.Call]:
    return [
        node
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in names and node.args
    ]


def test_every_pend_reason_that_lava_gives_says_what_to_do() -> None:
    sources = [path.read_text() for path in _sources("lavad") if path.name != "pend_reason.py"]
    named = {name for text in sources for name in re.findall(r"\b(?:PendReason|_?R)\.([A-Z_]+)", text)}
    assert {"JOB_DEPEND", "HOST_LESS_SLOTS"} <= named
    assert [reason.name for reason in PendReason if reason.name in named and reason not in waiting.given()] == []


def test_every_end_has_an_entry() -> None:
    assert [reason for reason in TermReason if reason is not TermReason.NONE and table.of_end(reason) is None] == []
    assert all(table.of_exit(code) is not None for code in (0, 1, 126, 127, 255, 128 + 9, 128 + 15, 128 + 11))


def test_every_refusal_in_the_code_is_explained() -> None:
    said = {_text(call.args[0]) for path in _sources("lavad", "cli") for call in _calls(path, "Refused", "Fail")}
    unknown = [text for text in said if len(_TOLD.findall(text)) > 1 and not table.find(text)]
    # what only passes on another's words
    assert unknown == [text for text in unknown if text.startswith("Failed to run the job: x")]


def test_every_code_with_which_a_host_refuses_is_explained() -> None:
    known = {entry.name for entry in table.entries() if entry.kind is Kind.START}
    given = {_text(call.args[0]) for path in _sources("agent/starter") for call in _calls(path, "Refused")}
    given |= {
        _text(call.args[1])
        for path in _sources("agent")
        for call in _calls(path, "refuse", "_refuse", "code_of")
        if call.args[1:]
    }
    assert {code for code in given if code} - known == set()
    assert {"cwd", "no_user", "gpu"} <= given


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("139", "SIGSEGV"),
        ("-9", "SIGKILL"),
        ("JOB_DEPEND", "JOB_DEPEND"),
        ("memlimit", "TERM_MEMLIMIT"),
        ("term_owner: job killed by owner.", "TERM_OWNER"),
        ("2611", "JOB_RUSAGE"),
        ("30001", "LIMIT_RESOURCE"),
        (" Closed by LSF administrator: 2 hosts;", "HOST_DISABLED"),
        ("Job <12> is not found", "no_job"),
        ("norml: No such queue. Job not submitted.", "queue"),
        ("JOBS limit defined on cluster has been reached (Limit Name: a, Limit Value: 3)", "LIMIT_JOBS"),
    ],
)
def test_an_entry_is_found_by_what_users_read(asked: str, found: str) -> None:
    assert [entry.name for entry in table.find(asked)] == [found]


def test_a_code_of_two_meanings_has_both() -> None:
    assert [(entry.kind, entry.code) for entry in table.find("2")] == [(Kind.PEND, 2), (Kind.EXIT, 2)]
    assert [entry.code for entry in table.find("Exited with exit code 127")] == [127]


def test_the_document_is_made_of_the_table() -> None:
    """``lava explain --markdown > docs/reasons.md``."""
    assert (ROOT / "docs" / "reasons.md").read_text() == table.document()


def test_the_command_says_what_it_knows(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["127"]) == 0
    assert "What to do: give its whole path" in capsys.readouterr().out
    assert [main(["qwertzuiop"]), main([])] == [255, 255]
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("qwertzuiop: nothing is known of it")
