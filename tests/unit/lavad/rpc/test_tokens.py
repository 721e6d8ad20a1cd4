"""Tokens: for whom they are made, what they open, and when they end."""

from __future__ import annotations

import jwt
import pytest

from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.control.tokens import make, shown
from lavad.core.events import TokensEnded
from lavad.core.events.apply import apply
from lavad.core.lang.asks import Ask, Caller, Kill, Query, Refused
from lavad.core.lang.token_ask import ListTokens, Token
from lavad.core.site.conf import Conf, Params
from lavad.rpc.tokens import BAD, HOUR, Tokens

NOW = 1_000_000.0
ANN = Caller("ann", 1001, "h1")
PAGE = Caller("web", 990, "h1")
TOKENS = Tokens(b"secret")


CLUSTER = Cluster()
"""All tokens of these tests are remembered."""


def made(ask: Token, caller: Caller = ANN, **params: object) -> str:
    conf = Conf(params=Params(**params))  # type: ignore[arg-type]
    who, token = TOKENS.wanted(ask, caller, conf, NOW)
    for event in make(CLUSTER, who.user, token, NOW).events:
        apply(CLUSTER, event)
    return str(TOKENS.signed(who, token)["token"])


def bearer(ask: Ask, caller: Caller, now: float = NOW) -> Caller:
    return TOKENS.bearer(ask, caller, CLUSTER, now)


def test_the_bearer_is_the_user_on_the_host_that_the_ask_comes_from() -> None:
    who = bearer(Kill(token=made(Token())), PAGE)
    assert who == Caller("ann", 1001, "h1", True)
    assert bearer(Kill(), PAGE) == PAGE


def test_rights_of_administrators_are_those_of_both_hosts() -> None:
    on_node = made(Token(), Caller("ann", 1001, "h2", may_administer=False))
    assert not bearer(Kill(token=on_node), PAGE).may_administer
    from_node = Caller("web", 990, "h2", may_administer=False)
    assert not bearer(Kill(token=made(Token())), from_node).may_administer


def test_a_token_ends() -> None:
    token = made(Token(seconds=60.0))
    assert bearer(Query(command="bjobs", token=token), PAGE, NOW + 59).user == "ann"
    with pytest.raises(Refused, match=BAD):
        bearer(Query(command="bjobs", token=token), PAGE, NOW + 60)
    with pytest.raises(Refused, match="at most 168 hours"):
        made(Token(seconds=169 * HOUR))


@pytest.mark.parametrize("forged", ["", "x", "unsigned", "other key", "fields"])
def test_what_lavad_has_not_signed_is_nothing(forged: str) -> None:
    claims = {"sub": "ann", "uid": 0, "adm": True, "kind": "api", "exp": int(NOW + 60), "jti": "1"}
    token = {
        "unsigned": jwt.encode(claims, "", algorithm="none"),
        "other key": jwt.encode(claims, b"another key of thirty-two bytes.", algorithm="HS256"),
        "fields": jwt.encode({"sub": "ann"}, TOKENS._key, algorithm="HS256"),
    }.get(forged, forged or "-")
    with pytest.raises(Refused, match=BAD):
        bearer(Kill(token=token), PAGE)


def test_a_link_makes_a_session_and_nothing_else() -> None:
    link = made(Token(kind="link"))
    with pytest.raises(Refused, match="A link only signs in"):
        bearer(Kill(token=link), PAGE)
    ask = Token(kind="session", token=link)
    session = made(ask, bearer(ask, PAGE))
    assert bearer(Kill(token=session), PAGE).user == "ann"
    program = made(Token(kind="api", token=session, name="laptop"), bearer(Kill(token=session), PAGE))
    assert bearer(Kill(token=program), PAGE).user == "ann"
    makes_none = [(kind, program) for kind in ("api", "session", "link")]
    for kind, of in (("api", link), ("session", session), ("link", session), *makes_none):
        ask = Token(kind=kind, token=of)
        with pytest.raises(Refused, match="permission denied: such a token cannot make another"):
            made(ask, bearer(ask, PAGE))
    with pytest.raises(Refused, match="no kind of token"):
        made(Token(kind="all"))


def test_a_token_made_of_a_session_has_its_rights_and_no_more() -> None:
    session = made(Token(kind="session", user="bob", uid=1002), PAGE, lava_web_user="web")
    ask = Token(kind="api", token=session)
    program = made(ask, bearer(ask, PAGE))
    assert bearer(Kill(token=program), PAGE) == Caller("bob", 1002, "h1", may_administer=False)


def test_when_a_token_was_last_asked_with_is_known() -> None:
    token, other = made(Token(name="a name")), made(Token())
    ident, unused = (TOKENS.id_of(one, NOW) for one in (token, other))
    bearer(Kill(token=token), PAGE, NOW + 5)
    assert (TOKENS.used[ident], TOKENS.used.get(unused)) == (NOW + 5, None)
    rows = {row["id"]: row for row in shown(CLUSTER, ListTokens(), ANN, NOW + 5, TOKENS.used, ident)}
    assert (rows[ident]["name"], rows[ident]["used"], rows[ident]["this"]) == ("a name", NOW + 5, True)
    assert (rows[unused]["name"], rows[unused]["used"], rows[unused]["this"]) == ("", None, False)
    with pytest.raises(Refused, match="in one line"):
        made(Token(name="a\nb"))


def test_the_page_speaks_for_others_only_where_the_site_says_so() -> None:
    for_bob = Token(kind="session", user="bob", uid=1002)
    token = made(for_bob, PAGE, lava_web_user="web")
    assert bearer(Kill(token=token), PAGE) == Caller("bob", 1002, "h1", may_administer=False)
    token = made(for_bob, PAGE, lava_web_user="web", lava_web_admin=True)
    assert bearer(Kill(token=token), PAGE).may_administer
    on_node = made(for_bob, Caller("web", 990, "h2", may_administer=False), lava_web_user="web", lava_web_admin=True)
    assert not bearer(Kill(token=on_node), PAGE).may_administer
    for ask, caller, user in (
        (for_bob, PAGE, ""),
        (for_bob, ANN, "web"),
        (Token(kind="api", user="bob", uid=1002), PAGE, "web"),
        (Token(kind="session", user="root", uid=0), PAGE, "web"),
        (Token(kind="session", user="root", uid=7), PAGE, "web"),
        (Token(kind="session", user="toor", uid=0), PAGE, "web"),
        (Token(kind="session", user="bob", uid=1002, token=made(Token(kind="link"))), PAGE, "web"),
    ):
        with pytest.raises(Refused):
            made(ask, caller, lava_web_user=user)


def test_a_token_that_was_called_back_serves_no_more() -> None:
    first, second = made(Token()), made(Token())
    ids = [TOKENS.id_of(token, NOW) for token in (first, second)]
    apply(CLUSTER, TokensEnded(at=NOW, user="ann", ids=ids[:1], by="ann"))
    with pytest.raises(Refused, match=BAD):
        bearer(Kill(token=first), PAGE)
    assert bearer(Kill(token=second), PAGE).user == "ann"
