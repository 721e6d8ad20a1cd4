"""The bounds of what a caller may send: length of texts, size of lists, range of numbers.

Rule: every field of an ask has one of these types (a test walks all of them), so that no ask fills the memory or holds a number
that neither the wire to the hosts nor the store can carry. What an option's text means is checked by its reader.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

MAX_INT32 = 2**31 - 1
MAX_IDS = 20_000
"""Job ids in one request."""
MAX_BULK = 10_000
"""Jobs in one request that submits many."""
MAX_WHY = 512
"""Characters of a host's reason that an event keeps."""
MAX_COMMAND = 2**20
MAX_SCRIPT = 16 << 20
MAX_INPUT = 8 << 20
"""``-is``: characters of an input file in base64."""
Uuid = Annotated[str, Meta(max_length=64)]
Word = Annotated[str, Meta(max_length=64)]
"""A verb, a name of an option, a state."""
Name = Annotated[str, Meta(max_length=511)]
"""A queue, user, host, group, profile or reservation."""
JobName = Annotated[str, Meta(max_length=8192)]
JobId = Annotated[str, Meta(max_length=4096)]
"""One job id as given, with a list of indices perhaps."""
Path = Annotated[str, Meta(max_length=4096)]
MAX_LINE = 8192
Line = Annotated[str, Meta(max_length=MAX_LINE)]
"""A requirement, a condition, a reason."""
Text = Annotated[str, Meta(max_length=64 << 10)]
Attached = Annotated[str, Meta(max_length=128 << 10)]
Command = Annotated[str, Meta(max_length=MAX_COMMAND)]
Script = Annotated[str, Meta(max_length=MAX_SCRIPT)]
Value = Annotated[str, Meta(max_length=2**20)]
"""The value of a variable of an environment."""
OptionText = Annotated[str, Meta(max_length=MAX_INPUT)]
"""``-is`` carries a file; all other options take less (``submit.options``)."""

Options = Annotated[
    dict[Word, OptionText | bool | Annotated[list[OptionText], Meta(max_length=10_001)]],
    Meta(max_length=500),
]
QueryText = Annotated[str, Meta(max_length=16 << 20)]
"""``-f`` carries a file, ``-m`` the hosts of one (``-M``); all other options take less (``queries.frame.request``)."""
QueryOptions = Annotated[dict[Word, QueryText | bool | Annotated[list[Line], Meta(max_length=1_000)]], Meta(max_length=500)]
Environment = Annotated[dict[Line, Value], Meta(max_length=20_000)]
Changes = Annotated[dict[Line, Value | None], Meta(max_length=20_000)]
"""To an environment; None: the variable is not in it."""
Ids = Annotated[list[JobId], Meta(max_length=MAX_IDS)]
Names = Annotated[list[Name], Meta(max_length=10_000)]
Words = Annotated[list[Word], Meta(max_length=100)]
Lines = Annotated[list[Line], Meta(max_length=100)]
Actions = Annotated[list[tuple[Word, Word, Annotated[int, Meta(ge=-1, le=255)]]], Meta(max_length=1_000)]
Limits = Annotated[dict[Word, Line], Meta(max_length=100)]

Umask = Annotated[int, Meta(ge=0, le=0o7777)]
Number = Annotated[int, Meta(ge=0, le=MAX_INT32)]
Bytes = Annotated[int, Meta(ge=0, le=(1 << 53) - 1)]
Signed = Annotated[int, Meta(ge=-(2**31), le=MAX_INT32)]
Job = Annotated[int, Meta(ge=0, le=MAX_INT32)]
"""The number of a job."""
Seconds = Annotated[float, Meta(ge=-1e15, le=1e15)]

LARGE = 64 << 10
"""Bytes of a frame that every kind of ask may have."""
LISTS = 512 << 10
"""Bytes of a frame that names jobs: ``MAX_IDS`` of them with their indices."""
LARGEST = 16 << 20
"""Bytes of a frame that carries a script, an environment or files."""
