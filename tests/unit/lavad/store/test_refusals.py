"""What users and the log are told of a store that refuses."""

from __future__ import annotations

import logging

import pytest

from lavad.store.connect import connect, make_engine
from lavad.store.errors import RecordRefused, StoreAway, StoreError, StoreFull, StoreRefused
from lavad.store.refusals import Refusals, for_users


def test_an_outage_is_two_lines_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    refusals = Refusals(logging.getLogger("it"), "the lease cannot be asked for", "the lease can be asked for again")
    refusals.worked()
    assert refusals.notices() == []
    for _ in range(2):
        for _ in range(100):
            refusals.failed(StoreAway("db: gone"))
            refusals.failed(StoreAway("db: starting up"))
        assert refusals.notices() == ["the master's store cannot be reached"]
        refusals.worked()
        refusals.worked()
        assert refusals.notices() == []
    once = [
        "the lease cannot be asked for: db: gone",
        "the lease cannot be asked for: db: starting up",
        "the lease can be asked for again",
    ]
    assert caplog.messages == 2 * once


@pytest.mark.parametrize("kind", [StoreAway, StoreFull, StoreRefused])
def test_users_are_not_told_what_the_database_said(kind: type[StoreRefused]) -> None:
    assert "postgresql" not in for_users(kind("postgresql://ann:***@db/lava: no"))


def test_a_user_is_told_what_is_wrong_with_a_record_of_hers() -> None:
    assert for_users(RecordRefused("store: too long")) == "The master's store refused the change: store: too long"


@pytest.mark.parametrize(
    "url", ["postgresql://ann:sesame@127.0.0.1:1/lava", "postgresql://127.0.0.1:1/lava?user=ann&password=sesame"]
)
def test_a_database_that_is_away_is_named_without_a_password(url: str) -> None:
    with pytest.raises(StoreAway, match=r"127\.0\.0\.1") as found:
        connect(make_engine(url))
    assert "sesame" not in str(found.value)


@pytest.mark.parametrize("text", ["sesame", "postgresql:/ann:sesame@h/d", "postgresql://ann:x@h:sesame/d"])
def test_what_is_no_url_is_not_repeated(text: str) -> None:
    with pytest.raises(StoreError) as found:
        make_engine(text)
    assert "sesame" not in str(found.value)
    assert found.value.__suppress_context__ or found.value.__context__ is None, "a traceback would have it"


def test_an_error_of_the_driver_names_no_values(tmp_path: object) -> None:
    engine = make_engine(f"sqlite:///{tmp_path}/db")
    with connect(engine) as connection, connection.begin(), pytest.raises(Exception, match="no such table") as found:
        connection.exec_driver_sql("INSERT INTO nowhere VALUES (?)", ("sesame",))
    assert "sesame" not in str(found.value)
    engine.dispose()
