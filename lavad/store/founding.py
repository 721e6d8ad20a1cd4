"""What a new master reads beside the live rows: the cluster's secret (made once) and the newest answers to callers."""

from __future__ import annotations

import secrets

import sqlalchemy as sa

from lavad.store import schema
from lavad.store.connect import connect
from lavad.store.errors import refusal
from lavad.store.writer import Store

_NAME = "secret"


def secret(store: Store) -> bytes:
    """32 random bytes that live as long as the store; keys of single attempts are derived from them."""
    name, value = schema.meta.c.name, schema.meta.c.value
    try:
        with connect(store.engine) as connection, connection.begin():
            found = connection.execute(sa.select(value).where(name == _NAME)).scalar()
            if found is None:
                found = secrets.token_hex(32)
                connection.execute(sa.insert(schema.meta).values(name=_NAME, value=found))
    except sa.exc.DBAPIError as error:
        raise refusal(error) from error
    return bytes.fromhex(str(found))


def newest_answers(store: Store, count: int) -> dict[str, bytes]:
    """Client uuid to answer, oldest first."""
    answers = schema.answers.c
    query = sa.select(answers.uuid, answers.data).order_by(answers.at.desc()).limit(count)
    try:
        with connect(store.engine) as connection, connection.begin():
            rows = connection.execute(query).all()
    except sa.exc.DBAPIError as error:
        raise refusal(error) from error
    return {uuid: bytes(data) for uuid, data in reversed(rows)}
