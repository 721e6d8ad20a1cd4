"""What a driver's error means for the batch."""

from __future__ import annotations

import psycopg
import pytest
import sqlalchemy.exc as exc

from lavad.store.errors import RecordRefused, StoreCorrupt, StoreFull, StoreRefused, refusal


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (psycopg.errors.ProgramLimitExceeded("index row size 8000 exceeds maximum 2704"), RecordRefused),
        (psycopg.errors.DiskFull("could not extend file"), StoreFull),
        (psycopg.errors.DataCorrupted("invalid page"), StoreCorrupt),
        (psycopg.errors.LockNotAvailable("canceling statement due to lock timeout"), StoreRefused),
    ],
)
def test_a_record_that_the_database_cannot_hold_fails_its_own_caller(error: psycopg.Error, kind: type[StoreRefused]) -> None:
    found = refusal(exc.OperationalError("INSERT", None, error))
    assert type(found) is kind
    assert str(found)
