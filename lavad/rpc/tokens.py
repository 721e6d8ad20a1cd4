"""Tokens, signed by the master: they say who their bearer is, so that the page acts as a user without any power of its own.

Who asks over the local socket is known by the kernel, or vouched for by a host's agent; that user gets a token. Rule: a token is
for one user, ends by itself, and serves while the cluster remembers it; a link makes sessions, a session of the page makes tokens
for programs, and those make none.
"""

from __future__ import annotations

import hmac
import secrets
from collections import OrderedDict

from msgspec.structs import replace

from lavad.core.cluster.cluster import Cluster
from lavad.core.lang.asks import Ask, Caller, Refused
from lavad.core.lang.token_ask import Token
from lavad.core.site.conf import Conf
from lavad.core.site.tokens import IssuedToken
from proto.answers import Answer

HOUR = 3600.0
LONGEST = {"link": 12 * HOUR, "session": 12 * HOUR, "api": 7 * 24 * HOUR}
"""Seconds that a token of each kind lives at most."""
USUAL = {"link": HOUR / 6, "session": 12 * HOUR, "api": 24 * HOUR}
_MAKES = {"link": "session", "session": "api"}
"""By the kind of the token that an ask comes with, the kind that it may ask for."""
MOST_USES = 20_000
_ALGORITHM = "HS256"
BAD = "The token is not valid or has ended; `lava web` prints an address that signs in, `lava token` a token"


class Tokens:
    """Makes and reads them. ``secret``: the store's, which all masters of the cluster have."""

    def __init__(self, secret: bytes) -> None:
        self._key = hmac.digest(secret, b"tokens of users", "sha256")
        self.used: OrderedDict[str, float] = OrderedDict()
        """When this master was last asked with a token, by its id."""

    def wanted(self, ask: Token, caller: Caller, conf: Conf, now: float) -> tuple[Caller, IssuedToken]:
        """A token for the caller, or for the user that the page's account names, and whose it is. Raises Refused."""
        longest = LONGEST.get(ask.kind)
        if longest is None:
            raise Refused(f"token: {ask.kind}: no kind of token")
        made_of = self._read(ask.token, now) if ask.token else {}
        if made_of and _MAKES.get(str(made_of["kind"])) != ask.kind:
            raise Refused("User permission denied: such a token cannot make another one")
        who = _for_user(ask, caller, conf) if ask.user else caller
        seconds = ask.seconds or USUAL[ask.kind]
        if not 0 < seconds <= longest:
            raise Refused(f"A token of this kind lives at most {longest / HOUR:g} hours")
        if not ask.name.isprintable():
            raise Refused("A name of a token is words in one line")
        ident = secrets.token_hex(6)
        return who, IssuedToken(ident, ask.kind, now, float(int(now + seconds)), who.host, who.may_administer, ask.name)

    def signed(self, who: Caller, token: IssuedToken) -> Answer:
        """The token itself, once the cluster remembers it."""
        import jwt  # with the first token: it loads cryptography, and most sites have no page

        claims = {
            "sub": who.user,
            "uid": who.uid,
            "adm": token.admin,
            "kind": token.kind,
            "exp": int(token.ends),
            "jti": token.id,
        }
        return {"token": jwt.encode(claims, self._key, algorithm=_ALGORITHM), "name": who.user, "ends": token.ends}

    def bearer(self, ask: Ask, caller: Caller, cluster: Cluster, now: float) -> Caller:
        """Who asks: the user of the token, from the caller's host; without one the caller. Raises Refused."""
        if not ask.token:
            return caller
        claims = self._read(ask.token, now)
        known = cluster.tokens.rows.get(str(claims["sub"]))
        if known is None or claims["jti"] not in known.tokens:
            raise Refused(BAD)
        if claims["kind"] == "link" and not isinstance(ask, Token):
            raise Refused("A link only signs in")
        self.used[str(claims["jti"])] = now
        self.used.move_to_end(str(claims["jti"]))
        if len(self.used) > MOST_USES:
            self.used.popitem(last=False)
        rights = bool(claims["adm"]) and caller.may_administer
        return replace(caller, user=str(claims["sub"]), uid=int(str(claims["uid"])), may_administer=rights)

    def id_of(self, token: str, now: float) -> str:
        """Raises Refused."""
        return str(self._read(token, now)["jti"])

    def _read(self, token: str, now: float) -> dict[str, object]:
        import jwt

        try:
            # its end is compared with the master's own clock below
            claims: dict[str, object] = jwt.decode(token, self._key, algorithms=[_ALGORITHM], options={"verify_exp": False})
            valid = float(str(claims["exp"])) > now and {"sub", "uid", "adm", "kind", "jti"} <= claims.keys()
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
