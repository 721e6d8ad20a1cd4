"""The texts that a stream knows: bounded, with numbers used again, and never one that the batch at hand needs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from lavad.hosts.sessions import MAX_TEXTS, Session


def jobs(*keys: int, spec: int = 1, submitted: float = 1.0) -> dict[int, Any]:
    return {key: SimpleNamespace(spec=spec, submitted=submitted) for key in keys}


def send(session: Session, needed: dict[int, Any]) -> dict[int, int]:
    return {key: session.assign_number(key, needed) for key in session.missing_texts(needed)}


def test_a_text_is_sent_once_and_again_when_its_spec_changed() -> None:
    session = Session("h", 0)
    assert send(session, jobs(1, 2)) == {1: 1, 2: 2}
    assert send(session, jobs(1, 2, 3)) == {3: 3}
    assert list(send(session, jobs(1, spec=2))) == [1]
    session.drop_text(2)
    assert list(send(session, jobs(1, 2, spec=2))) == [2]
    numbers = [told.number for told in session.texts.values()]
    assert len(set(numbers)) == len(numbers)


def test_a_job_with_the_id_and_the_options_of_a_former_one_has_a_text_of_its_own() -> None:
    """Ids have wrapped around: the host would run the former job's command."""
    session = Session("h", 0)
    send(session, jobs(1))
    assert list(send(session, jobs(1, submitted=2.0))) == [1]
    assert send(session, jobs(1, submitted=2.0)) == {}


def test_numbers_are_bounded_and_used_again() -> None:
    session = Session("h", 0)
    seen: dict[int, int] = {}
    for key in range(3 * MAX_TEXTS):
        for number in send(session, jobs(key)).values():
            seen[number] = key
    assert len(seen) == len(session.texts) == MAX_TEXTS
    assert {told.number: key for key, told in session.texts.items()} == seen
    assert send(session, jobs(3 * MAX_TEXTS - 1)) == {}


def test_what_a_batch_needs_keeps_its_number() -> None:
    session = Session("h", 0)
    needed = jobs(*range(MAX_TEXTS + 10))
    numbers = send(session, needed)
    assert len(set(numbers.values())) == MAX_TEXTS + 10
    assert session.missing_texts(needed) == []
    send(session, jobs(*range(5000, 5020)))
    assert session.texts[5000].number <= MAX_TEXTS + 10
