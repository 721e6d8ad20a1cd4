"""``-I``, ``-Ip`` and ``-Is``: a job that its user talks to. It is neither rerunnable nor checkpointable, nor an array."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from lavad.core.decide.base.draft import Draft
from lavad.core.lang.arrays import ArraySpec
from lavad.core.lang.asks import OptionValue, Refused


def mode(name: str) -> Callable[[Draft, OptionValue], None]:
    """The reader of one of the three options."""

    def read(draft: Draft, value: OptionValue) -> None:
        if not value:
            return
        if draft.text.interactive:
            raise Refused(f"-{draft.text.interactive} and -{name} cannot be given together")
        draft.set(interactive=True)
        draft.say(interactive=name)

    return read


def tee(draft: Draft, value: OptionValue) -> None:
    """``-tty``."""
    draft.say(tee=bool(value))


def check(draft: Draft) -> None:
    """Refused where it asks for what an interactive job cannot have."""
    if draft.text.tee and not draft.text.interactive:
        raise Refused("-tty: This is for interactive jobs (-I, -Ip, -Is)")
    if not draft.text.interactive:
        return
    if draft.spec.rerunnable:
        raise Refused("-r: Interactive jobs are not rerunnable")
    if draft.spec.checkpoint is not None:
        raise Refused("-k: Interactive jobs cannot be checkpointed")


def settle(draft: Draft, name: ArraySpec | str) -> None:
    """What queue and application give to batch jobs only is taken back."""
    if not draft.text.interactive:
        return
    if isinstance(name, ArraySpec):
        raise Refused("Job arrays cannot be interactive")
    draft.spec = replace(draft.spec, rerunnable=False, checkpoint=None)
