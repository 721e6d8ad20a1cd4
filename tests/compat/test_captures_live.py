"""All captured outputs of a running OpenLava, one after the other on a real cluster that is configured as that one was.

A line of ``WALK``: ``NAME …`` runs the commands of captures and keeps what came (``NAME USER``: as another user than alice);
``103=WORDS`` is a bsub of the job that the captures know as 103; ``$ LINE`` (``$bob LINE``) a command that only prepares,
``$103`` in it a job; ``on HOSTS`` closes all other hosts; ``REPORT < FILE`` reads a job's report; ``~103 STATE`` waits. Where
LSF 10.1 stands before the captured peer, ``OVERRIDDEN`` says so, with what lava does instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.compat.captured_overrides import OVERRIDDEN
from tests.compat.captured_walk import WALK
from tests.support.live.captured import CAPTURES, Captured, can_be_others

pytestmark = pytest.mark.skipif(not can_be_others(), reason="needs root and useradd: the captures are of several users")


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Captured]:
    with Captured(tmp_path_factory.mktemp("site")) as site:
        for line in WALK.strip().splitlines():
            _step(site, line.strip())
        yield site


def _step(site: Captured, line: str) -> None:
    head, _, rest = line.partition(" ")
    if not line or line.startswith("#"):
        return
    if head[0] == "$":
        command = rest.replace("OUTS", str(site.outputs)).replace("CONF", str(site.cluster.folder.conf))
        command = re.sub(r"\$(\d{3})", lambda found: site.ids[found[1]], command)
        ran = site.run(command, head[1:] or "alice")
        assert ran.status == 0, (line, ran)
    elif rest.startswith("< "):
        site.read(head, rest[2:])
    elif head == "on":
        site.only(*rest.split())
    elif head[0] == "~":
        site.wait(head[1:], *rest.split())
    elif "=" in head:
        mine, _, first = line.partition("=")
        site.submit(mine.partition("/")[0], first.replace("OUTS", str(site.outputs)), mine.partition("/")[2] or "alice")
    elif rest and rest not in CAPTURES and " " not in rest:
        site.play(head, rest)
    else:
        for name in line.split():
            site.play(name)


def test_every_capture_is_played_or_named_as_overridden() -> None:
    played = {word for line in WALK.splitlines() if line.split(" ")[0] in CAPTURES for word in line.split()}
    assert set(CAPTURES) - played <= set(OVERRIDDEN)


@pytest.mark.parametrize("name", [name for name in CAPTURES if name not in OVERRIDDEN])
def test_lava_does_what_was_captured(walked: Captured, name: str) -> None:
    captured, here = walked.neutral(name)
    assert here == captured, f"exit {here.status}: {here.err or here.out}"


INSTEAD = {name: want for name, want in OVERRIDDEN.items() if isinstance(want, tuple)}


@pytest.mark.parametrize("name", INSTEAD)
def test_lava_does_what_lsf_does_instead(walked: Captured, name: str) -> None:
    _, status, words = INSTEAD[name]
    ran = walked.ran[name]
    assert ran.status == status
    assert words in ran.out + ran.err
