"""What the reasons of waiting classes tell: which can never start, and which no host would help."""

from __future__ import annotations

from collections.abc import Mapping

from lavad.core.plan.volatile import WhyClass
from lavad.core.site.pend_reason import NEVER_ENOUGH_SLOTS, NEVER_GPU, NEVER_RESOURCE, PendReason, is_of_pool

_NEVER = (
    *NEVER_ENOUGH_SLOTS,
    PendReason.NO_SUITABLE_HOST,
    *NEVER_GPU,
    PendReason.NEVER_CPUS,
)


def never_start(why: Mapping[int, WhyClass]) -> frozenset[int]:
    """Those of these classes that ask for what no host, nor all hosts together, can ever have."""
    return frozenset(number for number, one in why.items() if _is_never(one))


def wait_for_no_host(why: Mapping[int, WhyClass]) -> frozenset[int]:
    """Those of these classes that no host would help: they can never start, or a queue, a time or a limit keeps them.

    What a pool leaves to the parts of a job together is about its hosts, be none of them named.
    """
    return frozenset(number for number, one in why.items() if _is_never(one) or not any(map(_is_of_hosts, one.reasons)))


def _is_of_hosts(reason: tuple[int, int, tuple[str, ...]]) -> bool:
    code, hosts, _ = reason
    return bool(hosts) or is_of_pool(code)


def _is_never(why: WhyClass) -> bool:
    code = why.reasons[0][0] if why.reasons else 0
    return code in _NEVER or code in NEVER_RESOURCE
