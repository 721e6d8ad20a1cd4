"""The connections to a cluster: one for asks, one for what becomes of jobs; and what is asked of jobs by their ids."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from lava_client import atexit
from lava_client.errors import Refused
from lava_client.follow import Follower
from lava_client.link import Link

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

    from typing_extensions import Self


class Session:
    """Connections to the cluster that an environment names. Raises Unavailable where there is none."""

    def __init__(self, environ: Mapping[str, str] | None = None, timeout: float | None = None) -> None:
        self._environ = environ
        self.link = Link(self.environ, timeout)
        """For asks; that of the follower is another."""
        self.follower = Follower(self.environ)
        atexit.register(self)

    @property
    def environ(self) -> Mapping[str, str]:
        """The environment that jobs get."""
        return os.environ if self._environ is None else self._environ

    def kill(self, ids: Sequence[str]) -> list[str]:
        """Kill jobs; the ids of those that had not ended."""
        answer = self.link.change({"ask": "kill", "jobs": {"ids": list(ids)}})
        return [str(row.get("id", "")) for row in answer.get("results", ()) if not row.get("why")]

    def rows(self, ids: Sequence[str], fields: str) -> list[dict[str, str]]:
        """What ``bjobs -o FIELDS`` shows of jobs, by field name in capitals; those that it does not know are left out."""
        try:
            text = self.link.query("bjobs", list(ids), {"o": fields, "json": True})
        except Refused:
            return []
        rows: list[dict[str, str]] = json.loads(text)["RECORDS"]
        return [row for row in rows if "ERROR" not in row]

    def slots(self) -> int:
        """The slots of all hosts."""
        text = self.link.query("bhosts", [], {"o": "max", "json": True})
        return sum(int(row["MAX"]) for row in json.loads(text)["RECORDS"] if str(row["MAX"]).isdecimal())

    def close(self) -> None:
        """Close the connections. Jobs run on; those of this object that have not ended are heard of no more."""
        self.follower.close()
        self.link.close()

    def abandon(self) -> None:
        """In the child of a fork: begin anew."""
        self.link.forget()
        self.follower.abandon()
        atexit.register(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()
