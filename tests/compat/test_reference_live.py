"""What a running OpenLava was seen to say, sentence by sentence, on a cluster configured as that one was (reference_rows.py)."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.compat.reference_rows import ROWS
from tests.support.live.captured import Captured, Ran, can_be_others

pytestmark = pytest.mark.skipif(not can_be_others(), reason="needs root and useradd: the sentences are of several users")


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[tuple[Ran, dict[str, str]]]]:
    """What each row's command did, one after the other, and the ids of the jobs by then."""
    with Captured(tmp_path_factory.mktemp("site")) as site:
        _begin(site)
        found = []
        for user, command, *_ in ROWS:
            found.append((site.run(_filled(command, site.ids), user), dict(site.ids)))
        yield found


def _begin(site: Captured) -> None:
    outs = site.outputs
    site.ids["outs"] = str(outs)
    site.submit("array", "-J 'three[1-3]' -H true")
    site.submit("run", f"-J run -o {outs}/run 'trap : USR1; echo begun; while :; do sleep 0.1; done'")
    site.submit("done", f"-g /risk -o {outs}/done -J done true")
    site.submit("exit", f"-o {outs}/exit 'exit 3'")
    site.submit("wait", f"-b {site.far}50 -J wait true")
    site.submit("held", "-H -J held true")
    site.wait_for_words(site.ids["run"], "begun")
    for name in ("done", "exit"):
        site.wait(site.ids[name], "DONE", "EXIT")


def _filled(text: str, ids: dict[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda found: ids.get(found[1], found[0]), text)


def _agrees(want: str, text: str) -> bool:
    """Whether a text is the one wanted, with ``...`` for anything and USAGE for a usage."""
    pattern = re.escape(want).replace(re.escape("..."), ".*").replace("USAGE", r"\s*(?:Usage:|lseligible:).*")
    return re.fullmatch(pattern, text, re.DOTALL) is not None


@pytest.mark.parametrize("number", range(len(ROWS)), ids=[f"{row[0]} {row[1]}" for row in ROWS])
def test_a_sentence(said: list[tuple[Ran, dict[str, str]]], number: int) -> None:
    _, command, status, out, err = ROWS[number]
    ran, ids = said[number]
    assert ran.status == status, (command, ran)
    assert _agrees(_filled(out, ids), ran.out), (command, ran)
    assert _agrees(_filled(err, ids), ran.err), (command, ran)
