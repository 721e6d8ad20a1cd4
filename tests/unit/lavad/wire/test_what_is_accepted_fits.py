"""No number that a submission is taken with is too large for the order that starts the job, or for the store."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy.dialects import sqlite

from lavad.core.decide.base.decided import Decided
from lavad.core.decide.submit.readers import READERS
from lavad.core.decide.submit.submit import Given, submit
from lavad.core.events.records import record_of
from lavad.core.lang.asks import Refused, Submit
from lavad.core.lang.bounds import MAX_INT32
from lavad.core.lang.ids import key_of
from lavad.core.lang.ranges import MAX_INDEX
from lavad.core.site.conf import Params
from lavad.hosts.orders import LastTexts, Texts, text_key
from lavad.hosts.sessions import Session
from lavad.store.batch import batch_of
from lavad.store.rows import Rows
from lavad.store.statements import Statements
from proto.options import BY_NAME, FLAG
from tests.support.worlds.bench import ALICE, LOCAL, Bench

NUMBERS = [0, 1, 255, 10**6, 2**31 - 1, 2**31, 2**32, 9_999_999_999, 10**15 - 1, 2**53, 2**63 - 1, 2**63, 2**64, 10**19]
FORMS = ["{}", "{}K", "{}Z", "1,{}", "{}:{}", "1:{}", "{}%", "num={}", "/f {}", "/f init={}", "core={}", "10/{}", "-{}", "{}.5G"]
OWN_FORMS = {
    "J": ["a[1-10:{}]", "a[1-{}]", "a[{}]", "a[1-3]%{}", "a[1,2-9:{}]"],
    "R": [
        "rusage[mem={}]",
        "rusage[mem=1:duration={}]",
        "span[ptile={}]",
        "{}*{{mem>1}}",
        "select[mem>{}]",
        "affinity[core({})]",
    ],
    "gpu": ["num={}", "num=1:gmem={}", "num=1:gmem={}G", "num=1:gtile={}"],
    "w": ["numdone(1, > {})", "exit(1, {})", "done({})"],
    "a": ["openmpi({})", "checkpoint({})"],
    "Q": ["{}", "EXCLUDE({})"],
    "is": ["f"],
    "hostfile": ["h1 {}"],
}
SINGLE = sorted(name for name in READERS if name in BY_NAME and BY_NAME[name].takes != FLAG)
STATEMENTS = Statements(sqlite.dialect(paramstyle="qmark"))


def values(option: str) -> list[Any]:
    """All numbers in all forms."""
    texts = [
        form.replace("{}", str(n)).replace("{{", "{").replace("}}", "}") for form in OWN_FORMS.get(option, FORMS) for n in NUMBERS
    ]
    return [["f", text] for text in texts] if option == "hostfile" else texts


def encoded(bench: Bench, decided: Decided) -> None:
    """All that is made of it on its way to a host and into the store; raises what they raise."""
    cluster = bench.cluster
    batch = batch_of(cluster, decided.events)
    batch.texts = decided.texts
    for _, written in Rows(batch, STATEMENTS, lambda number: ("u", "q", "p"), 0).writes():
        for row in written:
            assert all(abs(value) < 2**63 for value in row if isinstance(value, int)), row
    session = Session("h1", 0)
    for job, text in decided.texts:
        array = cluster.arrays.rows.get(job)
        record = record_of(cluster, job if array is None else key_of(job, array.indices.min()))
        session.assign_number(text_key(cluster, record), {text_key(cluster, record): record})
        Texts(cluster, session, LastTexts()).message(record, text, {})


@pytest.mark.parametrize("option", SINGLE)
def test_a_number_fits_or_is_refused(option: str) -> None:
    bench = Bench()
    cluster = bench.cluster
    bench.configure(params=Params(max_job_array_size=MAX_INDEX, max_user_priority=MAX_INT32))
    refused: list[Refused] = []
    for value in values(option):
        ask = Submit(command="true", options={option: value})
        try:
            decided = submit(cluster, Given(ask, ALICE, bench.now, LOCAL))
        except Refused as error:
            refused.append(error)
            continue
        cluster.forget_changes()
        bench.apply(*decided.events)
        encoded(bench, decided)
    assert all("\n" not in error.text and error.exit_code == 255 for error in refused)
