"""The connections to a cluster: one for asks, one for what becomes of jobs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from lava_client import atexit
from lava_client.follow import Follower
from lava_client.local import LocalLink
from lava_client.options import submission, submission_from_afar
from lava_client.rest import RestLink
from lava_client.service import find_service

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType
    from typing import Any

    from typing_extensions import Self

    from lava_client.link import Link


class Session:
    """Connections to the cluster of this host, or to one afar. Raises Unavailable where there is none."""

    def __init__(
        self,
        url: str = "",
        *,
        token: str = "",
        token_file: str = "",
        ca_file: str = "",
        environ: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> None:
        self._environ = environ
        self._service = find_service(self.environ, url, token, token_file, ca_file)
        self.link = self._connect(timeout)
        """For asks; that of the follower is another."""
        self.follower = Follower(self._connect)
        atexit.register(self)

    def _connect(self, timeout: float | None = None) -> Link:
        return LocalLink(self.environ, timeout) if self._service is None else RestLink(self._service, timeout)

    @property
    def environ(self) -> Mapping[str, str]:
        """The environment that names the cluster, which jobs of a cluster of this host get."""
        return os.environ if self._environ is None else self._environ

    def frame(
        self, command: str, options: Mapping[str, object], cwd: str | None, env: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """A submission for the link. Raises Refused where it cannot be sent as text."""
        if self._service is None:
            return submission(command, options, self.environ, cwd, env)
        return submission_from_afar(command, options, self.environ, cwd, {**(self._environ or {}), **(env or {})})

    def close(self) -> None:
        """Close the connections. Jobs run on; those of this object that have not ended are heard of no more."""
        self.follower.close()
        self.link.close()

    def abandon(self) -> None:
        """In the child of a fork: begin as a new process."""
        self.link.forget()
        self.follower.abandon()
        atexit.register(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._service.url if self._service else self.environ.get('LSF_ENVDIR', '')}>"
