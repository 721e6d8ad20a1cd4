"""Events of the tokens by which the page and REST act for a user."""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

from lavad.core.cluster.cluster import Cluster
from lavad.core.events.base import Event, folds
from lavad.core.site.tokens import IssuedToken, UserTokens


class TokenMade(Event, frozen=True):
    """The master signed a token for a user. Those of the user that have ended are forgotten with it."""

    external: ClassVar[bool] = True

    user: str
    token: IssuedToken


class TokensEnded(Event, frozen=True):
    """Tokens of a user serve no more.

    ``by`` whom they were called back; "": their time is over, or newer ones take their place.
    """

    external: ClassVar[bool] = True

    user: str
    ids: list[str]
    by: str = ""


@folds(TokenMade)
def _token_made(cluster: Cluster, event: TokenMade) -> None:
    _put(cluster, event.user, {**_kept(cluster, event.user, event.at, ()), event.token.id: event.token})


@folds(TokensEnded)
def _tokens_ended(cluster: Cluster, event: TokensEnded) -> None:
    _put(cluster, event.user, _kept(cluster, event.user, event.at, event.ids))


def _kept(cluster: Cluster, user: str, now: float, gone: Collection[str]) -> dict[str, IssuedToken]:
    known = cluster.tokens.rows.get(user)
    return {token.id: token for token in known.at(now) if token.id not in gone} if known is not None else {}


def _put(cluster: Cluster, user: str, tokens: dict[str, IssuedToken]) -> None:
    if tokens:
        cluster.tokens.put(user, UserTokens(user, tokens))
    elif user in cluster.tokens.rows:
        cluster.tokens.drop(user)
