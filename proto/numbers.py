"""Numbers that users write: plain digits within bounds, however many digits are sent."""

from __future__ import annotations

MOST = 2**31 - 1


def find_number(text: str, least: int = 0, most: int = MOST) -> int | None:
    """The number, or None: no plain digits, or out of bounds. Python's ``int`` takes ``_``, digits of other scripts, and no
    more than some thousand of them.
    """
    if not (text.isascii() and text.isdigit()):
        return None
    digits = text.lstrip("0") or "0"
    if len(digits) > len(str(most)):
        return None
    return number if least <= (number := int(digits)) <= most else None


def find_seconds(text: str) -> float:
    """A time in seconds, perhaps with a fraction; 0.0: the text is none."""
    whole, _, fraction = text.partition(".")
    parts = find_number(whole or "0", 0, 10**6), find_number(fraction or "0", 0, 10**9)
    return 0.0 if None in parts or text == "." else float(text or 0)
