"""One entry of what is explained."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import cached_property


class Kind(StrEnum):
    """What an entry is about: the title of its part of docs/reasons.md."""

    PEND = "Why a job waits"
    END = "Why a job was ended"
    EXIT = "Exit codes"
    START = "Why a host did not start a job"
    REFUSAL = "What is refused"


class Entry:
    """``name`` and ``code`` (None: it has none) find it, and so does ``text``, where ``…`` stands for any words."""

    def __init__(self, kind: Kind, name: str, code: int | None, text: str, means: str, do: str) -> None:
        self.kind = kind
        self.name = name
        self.code = code
        self.text = text
        """What users read; of a refusal its forms, with ``|`` between them."""
        self.means = means
        self.do = do

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Finds the text in what a user has read."""
        forms = [re.escape(form).replace("…", ".*") + (r"(?!\d)" if form[-1].isdigit() else "") for form in self.text.split("|")]
        return re.compile("|".join(forms), re.IGNORECASE | re.DOTALL)
