"""Tokens: which there are, making one for programs, and calling them back."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from web.master import Master
from web.problems import of_refusal
from web.rest import answers, bodies, changes
from web.rest.replies import in_json
from web.signin import SignIn, Who

TOKENS = ("tokens", "make_token", "revoke", "revoke_all")


class Tokens:
    """The routes of the table that have these names."""

    def __init__(self, master: Master, sign_in: SignIn) -> None:
        self._master = master
        self._sign_in = sign_in

    async def tokens(self, request: Request) -> Response:
        who = await self._sign_in.who(request)
        frame = {"ask": "listtokens", "user": request.query_params.get("user", "")}
        answer = await self._master.ask(frame, who.token, changes=False)
        return in_json(answers.Tokens(answer["tokens"]))

    async def make_token(self, request: Request) -> Response:
        """Only a session makes one: who has a token of a program has it no longer than that lives."""
        who = await self._sign_in.who(request)
        wish = await bodies.read(request, bodies.MakeToken)
        frame = {"ask": "token", "kind": "api", "name": wish.name, "seconds": wish.hours * 3600}
        answer = await self._master.ask(frame, who.token)
        return in_json(answers.MadeToken(answer["token"], answer["ends"]), 201)

    async def revoke(self, request: Request) -> Response:
        who = await self._sign_in.who(request)
        return await self._revoked(request, {"ids": [request.path_params["id"]]}, who)

    async def revoke_all(self, request: Request) -> Response:
        who = await self._sign_in.who(request)
        return await self._revoked(request, {"every": True, "user": request.query_params.get("user", "")}, who)

    async def _revoked(self, request: Request, what: dict[str, object], who: Who) -> Response:
        answer = await self._master.ask({"ask": "revoketokens", **what, **changes.done_once(request, who)}, who.token)
        rows = changes.rows_of(answer)
        if rows and not any(row.ok for row in rows):
            raise of_refusal(rows[0].why, True)
        return in_json(answers.Done(rows))
