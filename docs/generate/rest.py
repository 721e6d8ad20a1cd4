"""rest.md: the routes of REST with what they take and answer, from its OpenAPI document."""

from __future__ import annotations

from typing import Any

from docs.generate.markdown import cell, code, sentence, table
from web.rest.openapi import document

_HEAD = """\
# REST

Made of the same table as `/api/openapi.json`. How to sign in, and what the answers mean: [the page and REST](../web.md#rest).
Errors are `application/problem+json`.
"""

Json = dict[str, Any]
_NAMES = {"integer": "number", "boolean": "true or false", "object": "object", "null": "null"}


def page() -> str:
    found = document()
    paths: Json = found["paths"]  # type: ignore[assignment]
    schemas: Json = found["components"]["schemas"]  # type: ignore[index]
    parts = [_HEAD]
    for tag in dict.fromkeys(operation["tags"][0] for path in paths.values() for operation in path.values()):
        parts.append(f"\n## {tag}\n")
        for path, operations in paths.items():
            for method, operation in operations.items():
                if operation["tags"][0] == tag:
                    parts.append(_operation(method.upper(), path, operation))
    parts.append("\n## Records\n")
    parts += [_schema(name, schema) for name, schema in schemas.items()]
    return "".join(parts)


def _operation(method: str, path: str, operation: Json) -> str:
    rows = [
        (code(one["name"]), _type(one["schema"]), cell(one.get("description", "")))
        for one in operation["parameters"]
        if one["in"] == "query"
    ]
    if "requestBody" in operation:
        rows.append(
            ("body", _type(_content(operation["requestBody"])), "" if operation["requestBody"]["required"] else "may be left out")
        )
    good, answer = next((status, one) for status, one in operation["responses"].items() if status < "300")
    told = _type(_content(answer)) if "content" in answer else "nothing"
    text = table(("Takes", "", ""), rows)
    return f"\n### {method} {path}\n\n{sentence(operation['summary'])} Answers {good}: {told}.\n" + (f"\n{text}" if text else "")


def _content(holder: Json) -> Json:
    media, one = next(iter(holder["content"].items()))
    schema: Json = one["schema"]
    return {**schema, "media": media}


def _schema(name: str, schema: Json) -> str:
    rows = [(code(field), _type(one), cell(one.get("description", ""))) for field, one in schema.get("properties", {}).items()]
    about = cell(schema.get("description", "").replace("``", "`"))
    return f"\n### {name}\n" + (f"\n{about}\n" if about else "") + f"\n{table(('Field', '', ''), rows)}"


def _type(schema: Json) -> str:
    """What a value is, in words; a record as a link to it."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(_type(one) for one in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(code(str(one)) for one in schema["enum"])
    kind = schema.get("type", "anything")
    if kind == "array":
        return f"list of {_type(schema['items'])}" if isinstance(schema.get("items"), dict) else "list"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {_type(schema['additionalProperties'])}"
    if kind == "string" and schema.get("media", "").startswith("text/"):
        return "server-sent events" if "event-stream" in schema["media"] else "text"
    words = _NAMES.get(kind, kind)
    default = f", {code(str(schema['default']))}" if schema.get("default") not in (None, "", [], {}) else ""
    return f"{words}{default}"
