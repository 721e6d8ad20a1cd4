"""Tokens, by which the page and REST act for a user: to get one, to see which there are, to call them back."""

from __future__ import annotations

from lavad.core.lang import bounds as b
from lavad.core.lang.asks import Ask


class Token(Ask, frozen=True):
    """A token for the caller, of the kind ``link``, ``session`` or ``api``; ``seconds`` 0: as long as usual; ``name``: what for.

    ``user`` with its ``uid``: for this one, as the site's reverse proxy says (LAVA_WEB_USER).
    """

    kind: b.Word = "api"
    seconds: b.Seconds = 0.0
    name: b.Word = ""
    user: b.Name = ""
    uid: b.Signed = 0


class ListTokens(Ask, frozen=True):
    """Tokens that have not ended: the caller's, or of ``user`` (``all``: of everybody) for administrators of the cluster."""

    user: b.Name = ""


class RevokeTokens(Ask, frozen=True):
    """Tokens of these ``ids``, or with ``every`` all of the caller, or of ``user`` (``all``: of everybody), serve no more."""

    ids: b.Ids = []  # noqa: RUF012 - msgspec copies it
    every: bool = False
    user: b.Name = ""
    this: bool = False
    """Besides those, the token that this ask comes with."""
