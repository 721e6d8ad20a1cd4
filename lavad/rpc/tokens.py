"""Tokens, signed by the master: they say who their bearer is, so that the page acts as a user without any power of its own.

Who asks over the local socket is known by the kernel, or vouched for by a host's agent; that user gets a token. Rule: a token is
for one user and ends by itself; a link makes sessions only, and no token makes another token.
"""

from __future__ import annotations

import hmac

from msgspec.structs import replace

from lavad.core.lang.asks import Ask, Caller, Refused
from lavad.core.lang.token_ask import Token
from lavad.core.site.conf import Conf
from proto.answers import Answer

HOUR = 3600.0
LONGEST = {"link": 12 * HOUR, "session": 12 * HOUR, "api": 7 * 24 * HOUR}
"""Seconds that a token of each kind lives at most."""
USUAL = {"link": HOUR / 6, "session": 12 * HOUR, "api": 24 * HOUR}
_ALGORITHM = "HS256"
BAD = "The token is not valid or has ended; sign in again"


class Tokens:
    """Makes and reads them. ``secret``: the store's, which all masters of the cluster have."""

    def __init__(self, secret: bytes) -> None:
        self._key = hmac.digest(secret, b"tokens of users", "sha256")

    def make(self, ask: Token, caller: Caller, conf: Conf, now: float) -> Answer:
        """A token for the caller, or for the user that the page's account names. Raises Refused."""
        longest = LONGEST.get(ask.kind)
        if longest is None:
            raise Refused(f"token: {ask.kind}: no kind of token")
        made_of = self._read(ask.token, now) if ask.token else {}
        if made_of and (made_of["kind"] != "link" or ask.kind != "session"):
            raise Refused("A token cannot make another token")
        import jwt  # with the first token: it loads cryptography, and most sites have no page

        who = _for_user(ask, caller, conf) if ask.user else caller
        seconds = ask.seconds or USUAL[ask.kind]
        if not 0 < seconds <= longest:
            raise Refused(f"A token of this kind lives at most {longest / HOUR:g} hours")
        ends = int(now + seconds)
        claims = {"sub": who.user, "uid": who.uid, "adm": who.may_administer, "kind": ask.kind, "exp": ends}
        return {"token": jwt.encode(claims, self._key, algorithm=_ALGORITHM), "name": who.user, "ends": float(ends)}

    def bearer(self, ask: Ask, caller: Caller, now: float) -> Caller:
        """Who asks: the user of the token, from the caller's host; without one the caller. Raises Refused."""
        if not ask.token:
            return caller
        claims = self._read(ask.token, now)
        if claims["kind"] == "link" and not isinstance(ask, Token):
            raise Refused("A link only signs in")
        rights = bool(claims["adm"]) and caller.may_administer
        return replace(caller, user=str(claims["sub"]), uid=int(str(claims["uid"])), may_administer=rights)

    def _read(self, token: str, now: float) -> dict[str, object]:
        import jwt

        try:
            # its end is compared with the master's own clock below
            claims: dict[str, object] = jwt.decode(token, self._key, algorithms=[_ALGORITHM], options={"verify_exp": False})
            valid = float(str(claims["exp"])) > now and {"sub", "uid", "adm", "kind"} <= claims.keys()
        except (jwt.InvalidTokenError, KeyError, ValueError):
            valid = False
        if not valid:
            raise Refused(BAD)
        return claims


def _for_user(ask: Token, caller: Caller, conf: Conf) -> Caller:
    """The page's account (LAVA_WEB_USER) asks for a user whom the site's reverse proxy has signed in. Raises Refused.

    Never for root; an administrator's rights go with it only where LAVA_WEB_ADMIN says so.
    """
    if ask.token or not conf.params.lava_web_user or caller.user != conf.params.lava_web_user:
        raise Refused("User permission denied")
    if ask.kind != "session" or ask.user == "root" or ask.uid <= 0:
        raise Refused("User permission denied")
    return replace(caller, user=ask.user, uid=ask.uid, may_administer=caller.may_administer and conf.params.lava_web_admin)
