"""What goes wrong, as RFC 9457 has it: application/problem+json with a type, a title, a status and a sentence."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from starlette.requests import Request
from starlette.responses import Response

_encode = msgspec.json.Encoder().encode
TYPE = "application/problem+json"
TITLES = {
    400: "Bad request",
    401: "Not signed in",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    408: "Too slow",
    409: "Refused",
    413: "Too large",
    415: "Unsupported media type",
    421: "Unknown name of this server",
    422: "Refused",
    429: "Too many requests",
    500: "Internal error",
    503: "Not available now",
}


class ProblemDetails(msgspec.Struct, frozen=True):
    """A problem."""

    type: str
    """A URI of the kind of problem."""
    title: str
    """The kind in words."""
    status: int
    """Of HTTP."""
    detail: str
    """What went wrong, in a sentence."""


class Problem(Exception):
    """Raised where a request cannot be answered; ``wait``: seconds after which it may be tried again."""

    def __init__(self, status: int, detail: str, wait: int = 0) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.wait = wait


_MISSING = ("is not found", "No matching job found", "Bad host name", "No such queue", "or no array")
_INTERRUPTED = ("The query was interrupted", "The master's store")
_DENIED = ("User permission denied", "not a submission host", "is not heard from", "permission")


def of_refusal(text: str, changes: bool) -> Problem:
    """The problem that lavad's words are; ``changes``: the request was to change something, and 422 says that it could not."""
    if text.startswith(("The token is not valid", "A link only signs in")):
        return Problem(401, text)
    if not changes and text.startswith(_INTERRUPTED):
        return Problem(503, text, 1)
    if any(words in text for words in _DENIED):
        return Problem(403, text)
    if any(words in text for words in _MISSING):
        return Problem(404, text)
    return Problem(422 if changes else 400, text)


def answer(problem: Problem, more: Mapping[str, str] | None = None) -> Response:
    """The response; ``more``: headers that it has beside."""
    headers = {"Cache-Control": "no-store", **(more or {})}
    if problem.wait:
        headers["Retry-After"] = str(problem.wait)
    if problem.status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="lava"'
    record = ProblemDetails("about:blank", TITLES.get(problem.status, "Error"), problem.status, problem.detail)
    return Response(_encode(record), problem.status, headers, TYPE)


async def handler(_: Request, error: Exception) -> Response:
    """For Starlette: what a route raised."""
    return answer(error if isinstance(error, Problem) else Problem(500, "internal error; the log of the page says more"))
