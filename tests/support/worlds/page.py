"""The page over a real master without its daemons: a socket that lavad's own server answers, and a browser's requests."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Self, TypeVar

from msgspec.structs import replace
from starlette.testclient import TestClient

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.lang.asks import Caller
from lavad.engine import Engine
from lavad.rpc.dispatch import Dispatch
from lavad.rpc.local import LocalServer
from proto.names import Entry
from tests.unit.lavad.rpc.test_dispatch_fuzz import answered, made
from web.app import make_app
from web.master import Master
from web.settings import Settings
from web.signin import SignIn

T = TypeVar("T")
SECRET = b"secret"
ALICE, BOB, BOSS = (Caller(name, uid, "h1") for name, uid in (("alice", 1000), ("bob", 1001), ("boss", 1006)))


class PageWorld:
    """Use it in a ``with``; ``client`` is nobody yet."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self._folder = folder
        self._bearers: dict[Caller, str] = {}
        self.settings = Settings(str(folder), "127.0.0.1", 80, settings.pop("url", ""), **settings)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._made: tuple[Engine, Dispatch, Any] | None = None
        self._server: LocalServer | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        self._made = self._do(made(self._folder))
        self._made[0].listen(self._made[1].changes.committed)
        asyncio.run_coroutine_threadsafe(self._made[0].run(), self._loop)
        dispatch = self._made[1]
        self._server = LocalServer(str(self._folder / "lavad.sock"), "h1", lambda: dispatch)
        self._do(self._server.start())
        self.client = self.browser()
        self.client.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._made is not None
        self.client.__exit__(None, None, None)
        self._do(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._made[2].close()

    async def _end(self) -> None:
        if self._server is not None:
            self._server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    def browser(self, address: str = "127.0.0.1", scheme: str = "http") -> TestClient:
        """Somebody else at the same page."""
        master = Master(self.settings.run)
        sign_in = SignIn(self.settings, master, find=lambda name: Entry(name, 1000, 1000, f"/home/{name}", "/bin/sh"))
        app = make_app(self.settings, master, sign_in)
        return TestClient(app, f"{scheme}://127.0.0.1", follow_redirects=False, client=(address, 5000))

    def token(self, who: Caller, kind: str = "api", seconds: float = 0.0) -> str:
        """As lavad makes it for this caller."""
        return str(self.asked(who, ask="token", kind=kind, seconds=seconds)["token"])

    def asked(self, who: Caller, **frame: Any) -> dict[str, Any]:
        """What lavad answers a command of this user; {} where it refuses."""
        assert self._made is not None
        (answer,) = self._do(answered(self._made[1], json.dumps(frame).encode(), who))
        return dict(answer.get("ok", {}))

    def bearer(self, who: Caller) -> dict[str, str]:
        """The header of a program that acts as this user."""
        token = self._bearers.get(who) or self._bearers.setdefault(who, self.token(who))
        return {"Authorization": f"Bearer {token}"}

    def sign_in(self, who: Caller) -> str:
        """As with the address of ``lava web``; the token against forged requests."""
        answer = self.client.get("/login", params={"link": self.token(who, "link")})
        assert answer.status_code == 303, answer.text
        return str(self.client.get("/api/v1/session").json()["csrf"])

    def feed(self, decide: Callable[[Cluster, float], list[ev.Event]]) -> None:
        """Commit events."""
        assert self._made is not None
        self._do(self._made[0].ask(lambda cluster, now: Decided(events=decide(cluster, now))))

    def configure(self, **params: Any) -> None:
        """Other parameters of the site."""
        self.feed(
            lambda cluster, now: [
                ev.Configured(at=now, conf=replace(cluster.conf, params=replace(cluster.conf.params, **params)))
            ]
        )
