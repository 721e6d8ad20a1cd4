"""OpenAPI 3.1 of REST, made of its table and of the records that it answers."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from proto.version import VERSION
from web import problems
from web.rest.described import describe
from web.rest.routes import ROOT, TABLE, Route

_REF = "#/components/schemas/{name}"
_ID: dict[str, object] = {"type": "string", "minLength": 1, "maxLength": 511, "pattern": "^[^/]+$"}
_IDS = {
    "jobs": "id of a job or an array (`12`), or of an element (`12[3]`)",
    "hosts": "name of a host",
    "queues": "name of a queue",
    "tokens": "id of a token",
}
_WHAT = (
    "Everything that the page does, for programs. Times are seconds since the epoch, memory KB unless a field says else. "
    "A request acts as the user of its token (`lava token`), with that user's rights."
)


def document() -> dict[str, object]:
    """The whole."""
    kinds = [kind for route in TABLE for kind in (route.body, route.answer) if kind is not None]
    _, components = msgspec.json.schema_components([*dict.fromkeys(kinds), problems.ProblemDetails], ref_template=_REF)
    describe(components)
    paths: dict[str, dict[str, object]] = {}
    for route in TABLE:
        paths.setdefault(ROOT + route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "lava", "version": VERSION, "description": _WHAT},
        "servers": [{"url": "/"}],
        "security": [{"token": []}, {"session": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "header", "name": "X-CSRF-Token"},
            },
        },
    }


def _operation(route: Route) -> dict[str, object]:
    parameters: list[dict[str, object]] = []
    if "{id}" in route.path:
        what = _IDS[route.path.split("/")[1]]
        parameters.append({"name": "id", "in": "path", "required": True, "description": what, "schema": _ID})
    parameters += [
        {"name": param.name, "in": "query", "description": param.text, "schema": param.schema} for param in route.params
    ]
    if route.method != "GET" and route.name not in ("sign_out", "listing", "make_token"):
        key = {"name": "Idempotency-Key", "in": "header", "schema": {"type": "string", "maxLength": 255, "pattern": "^[ -~]*$"}}
        parameters.append({**key, "description": "a request with the same key is done once"})
    found: dict[str, object] = {
        "operationId": route.name,
        "summary": route.text,
        "tags": [route.tag],
        "parameters": parameters,
        "responses": _responses(route),
    }
    if route.body is not None:
        schema = {"$ref": _REF.format(name=route.body.__name__)}
        required = route.name in ("submit", "submit_many", "kill_many", "listing", "switch", "move", "modify")
        found["requestBody"] = {"required": required, "content": {"application/json": {"schema": schema}}}
    return found


def _responses(route: Route) -> dict[str, object]:
    good: dict[str, object] = {"description": route.text}
    if route.answer is not None:
        good["content"] = {route.media: {"schema": {"$ref": _REF.format(name=route.answer.__name__)}}}
    elif route.status != 204:
        good["content"] = {route.media: {"schema": {"type": "string"}}}
    return {str(route.status): good, **{str(status): _bad(status) for status in _statuses(route)}}


def _statuses(route: Route) -> Iterable[int]:
    yield from (400, 401, 403, 421, 429, 503)
    if "{id}" in route.path or route.word or route.name == "kill_many":
        yield 404
    if route.body is not None:
        yield from (408, 413, 415)
    if route.method != "GET":
        yield 422
    if route.name == "end":
        yield 409


def _bad(status: int) -> dict[str, object]:
    schema = {"$ref": _REF.format(name="ProblemDetails")}
    return {"description": problems.TITLES[status], "content": {problems.TYPE: {"schema": schema}}}
