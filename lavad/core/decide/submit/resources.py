"""Options about the hosts of a job: resource requirement, named hosts, exclusive use."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence

from lavad.core.decide.base.draft import JobDraft, text_of
from lavad.core.decide.submit.readers import reads, texts_of
from lavad.core.lang.asks import OptionValue, Refused
from lavad.core.lang.resreq import text as resreq

NO_HOST = "Bad host name, host group name or cluster name"
_MARKED = re.compile(r"([^+!]*)(?:\+[0-9]{0,9})?!?")


@reads("R")
def read_requirement(draft: JobDraft, option: str, value: OptionValue) -> None:
    """Several are merged, as LSF does."""
    try:
        merged = resreq.merge(texts_of(option, value), draft.conf.params.resreq_unit_mb)
        parsed = resreq.parse(merged)
    except resreq.ResReqError as error:
        raise Refused(str(error)) from None
    missing = resreq.unsupported(parsed)
    if missing:
        raise Refused(f"Bad resource requirement: {missing} is not supported by lava")
    unknown = resreq.unknown_names(parsed, draft.known_resources)
    if unknown:
        raise Refused(f"unknown resource <{unknown[0]}>: Bad resource requirement syntax")
    kinds = resreq.unit_types(parsed)
    wrong = next((kind for kind in kinds if kind and not draft.conf.params.unit_type_of(kind)), None)
    if wrong is not None or (kinds and not draft.conf.params.units):
        raise Refused(f"Bad resource requirement: cu[]: no compute units{f' of type <{wrong}>' if wrong else ''} are configured")
    draft.set_spec(resreq=merged)


@reads("m")
def read_hosts(draft: JobDraft, option: str, value: OptionValue) -> None:
    """Hosts and host groups that there are, each perhaps with ``+n`` or ``!``."""
    draft.set_spec(hosts=known_hosts(text_of(option, value).split(), draft.known_hosts))


def known_hosts(words: Sequence[str], known: Container[str]) -> tuple[str, ...]:
    """The words of ``-m``, each of which names a host or group that there is; raises Refused."""
    if not words:
        raise Refused(NO_HOST)
    for word in words:
        match = _MARKED.fullmatch(word)
        if match is None or match[1] not in known:
            raise Refused(f"{word if match is None else match[1]}: {NO_HOST}")
    return tuple(words)


def base_host(word: str) -> str:
    """The host or group name of a ``-m`` word: without ``+n`` and ``!``."""
    return word.rstrip("!").partition("+")[0]


@reads("x")
def read_exclusive(draft: JobDraft, option: str, value: OptionValue) -> None:
    """No other job on its hosts."""
    if value:
        draft.set_spec(exclusive=True)
