"""What bjobs -l and bhist -l tell of a job's checkpoints. LSF's own listings have no such part: the layout is lava's."""

from __future__ import annotations

from lavad.core.job.checkpoints import Checkpoints, Generation
from lavad.core.rules.checkpoint_interval import FIRST_COST
from lavad.queries.frame import formats


def period_words(period: int, cost: float, between_failures: float) -> str:
    """Why the period of ``-k "DIR auto"`` is what it is."""
    takes = "is assumed to take" if cost == FIRST_COST else "takes"
    hours = f"{between_failures / 3600:.0f} hours"
    return f"{period} seconds: a checkpoint {takes} {cost:.1f} seconds, and one of its hosts is expected to fail every {hours}"


def size_words(size: int) -> str:
    """Bytes as people read them; "-" where they are not known."""
    return formats.bytes_text(size / 1024) if size else "-"


def _held(one: Generation) -> str:
    return f", copied to {' '.join(one.hosts)}" if one.hosts else ""


def section(known: Checkpoints | None) -> str:
    """The generations of a job with what they cost, and what its restarts have lost; "" where there is nothing to tell."""
    if known is None:
        return ""
    lines = ["\n CHECKPOINTS:\n"]
    stages = bool(known.not_staged) or any(one.staged for one in known.generations)
    if known.generations:
        lines.append(f" GENERATION  TIME                  SECONDS      SIZE  {'  STAGED  ' if stages else ''}METHOD\n")
    for one in known.generations:
        copy = f"{size_words(one.staged):>8}  " if stages else ""
        taken, at = f"{one.seconds:.1f}" if one.seconds else "-", formats.full_time(one.at)
        lines.append(
            f" {one.number:<10}  {at:<20}  {taken:>7}  {size_words(one.size):>8}  {copy}{one.method or '-'}{_held(one)}\n"
        )
    if known.period:
        lines.append(f" Period: {period_words(known.period, known.next_cost, known.between_failures)}\n")
    if known.not_staged:
        lines.append(f" Not staged: {known.not_staged}\n")
    if known.failed:
        lines.append(f" Failed: {known.failed}, the last on {formats.full_time(known.failed_at)}: {known.why}\n")
    if known.cost:
        lines.append(f" Time that checkpoints took: {known.cost:.0f} seconds\n")
    if known.restarts:
        lines.append(f" Work lost in {known.restarts} restarts: {known.lost:.0f} seconds\n")
    return "".join(lines)
