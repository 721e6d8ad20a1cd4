"""The request for a token, by which the page and REST act for a user."""

from __future__ import annotations

from lavad.core.lang import bounds as b
from lavad.core.lang.asks import Ask


class Token(Ask, frozen=True):
    """A token for the caller, of the kind ``link``, ``session`` or ``api``; ``seconds`` 0: as long as usual.

    ``user`` with its ``uid``: for this one, as the site's reverse proxy says (LAVA_WEB_USER).
    """

    kind: b.Word = "api"
    seconds: b.Seconds = 0.0
    user: b.Name = ""
    uid: b.Signed = 0
