"""Tokens of users: made, called back, and forgotten when their time is over."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.base.decisions import decides
from lavad.core.lang.asks import Caller, Refused
from lavad.core.lang.token_ask import ListTokens, RevokeTokens
from lavad.core.site.rights import why_not_admin
from lavad.core.site.tokens import IssuedToken
from proto.answers import Result, TokenRow

MOST = {"link": 20, "session": 50, "api": 100}
"""Of a user at a time. A link or session beyond takes the place of the oldest; a program's token is refused."""
ALL = "all"


def make(cluster: Cluster, user: str, token: IssuedToken, now: float) -> Decided:
    """Remember a new token. Raises Refused where the user has too many."""
    known = cluster.tokens.rows.get(user)
    same = [one.id for one in known.at(now) if one.kind == token.kind] if known is not None else []
    made = ev.TokenMade(at=now, user=user, token=token)
    if len(same) < MOST[token.kind]:
        return Decided(events=[made])
    if token.kind == "api":
        raise Refused(f"You have {len(same)} tokens that have not ended: lava token --list, --revoke ID")
    return Decided(events=[ev.TokensEnded(at=now, user=user, ids=same[: len(same) - MOST[token.kind] + 1]), made])


def shown(
    cluster: Cluster,
    ask: ListTokens,
    caller: Caller,
    now: float,
    used: Mapping[str, float] = MappingProxyType({}),
    this: str = "",
) -> list[TokenRow]:
    """The tokens of the caller, or of others for administrators of the cluster; the first to end first. Raises Refused.

    ``used``: when one was last asked with, by id; ``this``: the one that the ask comes with.
    """
    name = ask.user or caller.user
    if name != caller.user and (why := why_not_admin(cluster.conf, caller)):
        raise Refused(why)
    rows = cluster.tokens.rows
    found = list(rows.values()) if name == ALL else [rows[name]] if name in rows else []
    listed = [
        TokenRow(
            id=token.id,
            name=token.name,
            user=row.user,
            kind=token.kind,
            host=token.host,
            made=token.made,
            used=used.get(token.id),
            ends=token.ends,
            this=token.id == this,
        )
        for row in found
        for token in row.at(now)
    ]
    return sorted(listed, key=lambda row: row["ends"])


@decides(RevokeTokens)
def revoke(cluster: Cluster, ask: RevokeTokens, caller: Caller, now: float) -> Decided:
    """Call tokens back: those of the caller, and of anyone for administrators of the cluster. Raises Refused."""
    denied = why_not_admin(cluster.conf, caller)
    if ask.user not in ("", caller.user) and denied:
        raise Refused(denied)
    if ask.every:
        names = list(cluster.tokens.rows) if ask.user == ALL else [ask.user or caller.user]
        gone = {name: [one.id for one in rows.at(now)] for name in names if (rows := cluster.tokens.rows.get(name)) is not None}
        results = [Result(id=ident, ok=True) for ids in gone.values() for ident in ids]
        return _ended(gone, results, caller, now)
    if not ask.ids:
        raise Refused("No token is named")
    gone, results = {}, []
    for ident in dict.fromkeys(ask.ids):
        owner = next((name for name, row in cluster.tokens.rows.items() if ident in row.tokens), "")
        if owner and (owner == caller.user or not denied):
            gone.setdefault(owner, []).append(ident)
            results.append(Result(id=ident, ok=True))
        else:
            results.append(Result(id=ident, ok=False, why=denied if owner else f"Token <{ident}> is not found"))
    return _ended(gone, results, caller, now)


def _ended(gone: dict[str, list[str]], results: list[Result], caller: Caller, now: float) -> Decided:
    events: list[ev.Event] = [ev.TokensEnded(at=now, user=user, ids=ids, by=caller.user) for user, ids in gone.items() if ids]
    return Decided(events=events, answer={"results": results})


def over(cluster: Cluster, now: float) -> Decided:
    """Forget tokens whose time is over."""
    events: list[ev.Event] = []
    for user, row in cluster.tokens.rows.items():
        ids = [token.id for token in row.tokens.values() if token.ends <= now]
        if ids:
            events.append(ev.TokensEnded(at=now, user=user, ids=ids))
    return Decided(events=events)
