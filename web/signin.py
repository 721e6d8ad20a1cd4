"""Who asks: the bearer of a token, the session in a cookie, or the user whom the site's reverse proxy names.

Rule: whatever changes something and comes with a cookie, or through the proxy, has to carry the token against forged requests
(X-CSRF-Token), which only a page of this origin can read.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

import msgspec
from starlette.requests import Request

from proto.answers import Answer
from proto.daemon.workers import Workers
from proto.names import Entry, NoAnswer, find_user
from proto.site_records import Me
from web.limits import Bucket
from web.master import Master
from web.problems import Problem
from web.settings import Settings

KNOWN_FOR = 30.0
"""Seconds for which a token that lavad has accepted is taken without asking it again."""
MOST_KNOWN = 5000
PROXY_PROOF = "x-lava-proxy-secret"
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
FORGED = "The request lacks the token of this session against forged requests (X-CSRF-Token), or comes from another site"
NOBODY = "Sign in with the address that `lava web` prints, or with a token (`lava token`)"
_me = msgspec.json.Decoder(Me)


class Who(NamedTuple):
    """The user of a request."""

    user: str
    token: str
    csrf: str
    """"" of a bearer, whom no browser signs in by itself."""


class SignIn:
    """Of all requests. ``clock`` gives seconds that only go up, ``find`` a user of this host."""

    def __init__(
        self,
        settings: Settings,
        master: Master,
        clock: Callable[[], float] = time.monotonic,
        find: Callable[[str], Entry | None] = find_user,
    ) -> None:
        self._settings = settings
        self._master = master
        self._clock = clock
        self._find = find
        self._secret = secrets.token_bytes(32)
        self._directory = Workers("users", 4)
        self._known: OrderedDict[str, tuple[float, str]] = OrderedDict()
        """Digest of a token to (until when, user)."""
        self._proxied: OrderedDict[str, tuple[float, str]] = OrderedDict()
        """User to (until when, token)."""
        self._failures = Bucket(10, 1 / 6, clock)
        self._reads = Bucket(200, 50, clock)
        self._writes = Bucket(200, 50, clock)

    @property
    def cookie(self) -> str:
        """Its name, one for each port, as a browser sends cookies to all ports of a host."""
        name = f"lava_session_{self._settings.port}"
        return f"__Host-{name}" if self._settings.is_secure else name

    async def who(self, request: Request) -> Who:
        """Who asks. Raises Problem: 401 for nobody, 403 for a forged request, 429."""
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            user = await self._user_of(request, given.strip())
            return self._counted(request, Who(user, given.strip(), ""))
        if user := self._proxy_user(request):
            token = await self._token_for(user)
            found = Who(user, token, self._sign("proxy " + user))
        elif cookie := request.cookies.get(self.cookie, ""):
            found = Who(await self._user_of(request, cookie), cookie, self._sign(cookie))
        else:
            raise Problem(401, NOBODY)
        if request.method not in SAFE:
            self._refuse_forged(request, found.csrf)
        return self._counted(request, found)

    def _counted(self, request: Request, who: Who) -> Who:
        request.state.who = who
        (self._reads if request.method in SAFE else self._writes).take(who.user)
        return who

    def _sign(self, text: str) -> str:
        return hmac.new(self._secret, text.encode(errors="replace"), hashlib.sha256).hexdigest()

    def _refuse_forged(self, request: Request, csrf: str) -> None:
        given = request.headers.get("x-csrf-token", "")
        if not hmac.compare_digest(given.encode(errors="replace"), csrf.encode()):
            raise Problem(403, FORGED)
        if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            raise Problem(403, FORGED)

    async def _user_of(self, request: Request, token: str) -> str:
        """The user of a token, as lavad reads it."""
        digest = hashlib.sha256(token.encode(errors="replace")).hexdigest()
        until, user = self._known.get(digest, (0.0, ""))
        if self._clock() < until:
            return user
        address = request.client.host if request.client is not None else ""
        try:
            user = _me.decode(await self._master.record(["me"], {}, token or "-")).user
        except Problem as problem:
            # 400 is said of what is no token at all; else lavad has failed, and the token may be good
            if problem.status == 401 or problem.detail.startswith("Bad request"):
                self._failures.take(address)
                raise Problem(401, problem.detail if problem.status == 401 else NOBODY) from None
            raise Problem(503, problem.detail, 1) if problem.status == 400 else problem from None
        self._known[digest] = (self._clock() + KNOWN_FOR, user)
        if len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)
        return user

    def _proxy_user(self, request: Request) -> str:
        if not self._settings.proxies or request.client is None or request.client.host not in self._settings.proxies:
            return ""
        user = request.headers.get(self._settings.proxy_header, "").strip()
        proof = request.headers.get(PROXY_PROOF, "")
        if user and not hmac.compare_digest(proof.encode(errors="replace"), self._settings.proxy_secret.encode()):
            raise Problem(403, f"The reverse proxy's {PROXY_PROOF} is not the one in LAVA_WEB_PROXY_SECRET_FILE")
        return user

    async def _token_for(self, user: str) -> str:
        """A session's token for a user whom the reverse proxy has signed in."""
        until, token = self._proxied.get(user, (0.0, ""))
        if self._clock() < until:
            return token
        entry = await self.account(user)
        if entry is None:
            raise Problem(403, f"{user[:80]}: no user of this host")
        seconds = 3600
        answer = await self._master.ask({"ask": "token", "kind": "session", "user": user, "uid": entry.uid, "seconds": seconds})
        self._proxied[user] = (self._clock() + seconds / 2, str(answer["token"]))
        if len(self._proxied) > MOST_KNOWN:
            self._proxied.popitem(last=False)
        return str(answer["token"])

    async def session_of(self, request: Request, link: str) -> Answer:
        """A session's token for a link. Raises Problem."""
        try:
            return await self._master.ask({"ask": "token", "kind": "session"}, link or "-", changes=False)
        except Problem as problem:
            if problem.status in (400, 401):
                self._failures.take(request.client.host if request.client is not None else "")
            raise

    async def account(self, user: str) -> Entry | None:
        """The user on this host; None: there is none. Raises Problem while the directory does not answer."""
        try:
            return await self._directory.run(self._find, user)
        except NoAnswer as error:
            raise Problem(503, f"users cannot be looked up now: {error}", 5) from None

    def forget(self, token: str) -> None:
        """Of a session that has ended: a proxy's user gets another."""
        self._known.pop(hashlib.sha256(token.encode(errors="replace")).hexdigest(), None)
        for user in [user for user, (_, known) in self._proxied.items() if known == token]:
            del self._proxied[user]
