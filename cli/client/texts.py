"""Strings as the system and files give them, which need not be text."""

from __future__ import annotations


def is_text(value: str) -> bool:
    """Whether a string is valid Unicode."""
    if value.isascii():
        return True
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def printable(value: str) -> str:
    """A string with what is no text in it made visible: bytes of the system's, and halves of characters of JSON and YAML."""
    try:
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:
        return value.encode("utf-8", "backslashreplace").decode()


def one_line(text: str) -> str:
    """A text of strangers as a terminal may have it: control characters, which it would obey, are escapes."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)
