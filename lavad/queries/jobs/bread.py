"""bread and bstatus: the messages that were posted to a job, and its external status (message 0)."""

from __future__ import annotations

import time
from collections.abc import Iterator

from lavad.core.job.message import Message
from lavad.core.lang.asks import Refused
from lavad.core.lang.ids import key_of
from lavad.core.lang.ids import show as show_key
from lavad.core.lang.job_names import ArrayError, parse_job_id
from lavad.core.lang.states import FINAL
from lavad.queries.facts import visibility
from lavad.queries.facts.jobset import UNFINISHED, JobSet
from lavad.queries.frame import formats
from lavad.queries.frame.request import Options, Request, Shown, out
from lavad.queries.jobs import bjobs_filters
from lavad.queries.jobs.bjdepinfo import Relations
from proto.numbers import find_number

UNKNOWN = "lsb_getmsgjob(): XDR encode/decode error"


def _messages(request: Request, unknown: str) -> tuple[str, str, tuple[Message, ...]]:
    if len(request.words) != 1:
        raise Refused(f"{request.query.command}: one job ID is needed")
    word = request.words[0]
    try:
        job, indices = parse_job_id(word)
    except ArrayError as error:
        raise Refused(f"{error}.") from None
    row = Relations(request).row(key_of(job, indices.min() if indices else 0))
    if row is None or not visibility.sees(request, request.view.spec(row), detail=True):
        raise Refused(unknown)
    return word, request.view.spec(row).user, row.messages


def show(request: Request) -> Iterator[Shown]:
    """bread: a line a message; -i one alone, -a its attached data, to its owner alone."""
    options = request.options()
    if "J" in options:
        request.words = [_named(request, options)]
    word, owner, messages = _messages(request, UNKNOWN)
    given = options.text("i")
    if given:
        number = find_number(given)
        if number is None:
            raise Refused(f"{given[:80]}: Bad message index")
        messages = tuple(message for message in messages if message.number == number)
    if not messages:
        if "a" in options:
            raise Refused(f"{word}: No data is attached to the message")
        yield out(f"Job {word} has no posted messages\n")
        return
    if "a" in options:
        if owner != request.caller.user:
            raise Refused(f"{word}: User permission denied")
        last = messages[-1]
        data = request.view.reader.attached(last.attached, last.number) if last.attached else last.body
        if not data:
            raise Refused(f"{word}: No data is attached to the message")
        yield out(data)
        return
    yield out(f"Messages posted to jobID {word}\n")
    for message in messages:
        yield out(f"POST_TIME: {time.strftime('%b %e %H:%M:%S', time.localtime(message.at))}  MESSAGE: {message.text}\n")


def _named(request: Request, options: Options) -> str:
    """The id of the caller's newest job of this name."""
    wanted = bjobs_filters.read_wanted(request, options)
    wanted.states = UNFINISHED | FINAL
    jobs = list(JobSet(request.view, wanted, request.now))
    if not jobs:
        raise Refused(f"Job <{options.text('J')[:80]}> is not found")
    return show_key(max(jobs, key=lambda job: (job.submitted, job.key)).key)


def show_status(request: Request) -> Iterator[Shown]:
    """bstatus: the newest message 0."""
    options = request.options()
    if "J" in options:
        request.words = [_named(request, options)]
    word, _, messages = _messages(request, f"Job <{request.words[0] if request.words else ''}> is not found")
    status = next((message for message in messages if message.number == 0), None)
    if status is None:
        raise Refused(f"Job <{word}> has no external status")
    yield out("JOBID      FROM       UPDATE_TIME     STATUS\n")
    yield out(f"{word:<10} {status.by:<10} {formats.short_time(status.at):<15} {status.text}\n")
