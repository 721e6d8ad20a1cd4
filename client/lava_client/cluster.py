"""The cluster: submits jobs, finds them again, kills them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lava_client import atexit
from lava_client.errors import LavaError, Refused
from lava_client.job import Job
from lava_client.options import command_line, options_of, refuse_bytes
from lava_client.session import Session

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    Command = str | Sequence[str]
    """A shell command, or the words of a command."""

MOST_AT_ONCE = 5_000
"""Commands in one ask."""


class Cluster(Session):
    """The cluster that this process's environment names (LSF_ENVDIR, as ``lava env`` sets it), or one afar, over REST.

    ``url``: the address of its page (``https://HOST:PORT``; LAVA_URL); ``token``: what ``lava token`` prints (LAVA_TOKEN), or
    ``token_file``: where it is, readable by nobody else (LAVA_TOKEN_FILE, ~/.lava/token); ``ca_file``: the authority of the
    page's certificate, where this machine does not know it (LAVA_CA_FILE). ``environ``: another environment than this
    process's; jobs get it too, from afar only if it is given. ``timeout``: seconds that a master which is away is waited for
    before Unavailable is raised; None: for ever, as commands do. Raises Unavailable where there is no cluster.
    """

    def submit(self, command: Command, *, cwd: str | None = None, env: Mapping[str, str] | None = None, **options: object) -> Job:
        """Submit a shell command, or the words of one, as bsub does. Raises Refused, in bsub's words.

        ``cwd``: its folder, unless given this process's, from afar the user's home; ``env``: variables beside those of this
        process, from afar beside HOME, USER, SHELL and a plain PATH. Options are bsub's,
        by plain names (``lava_client.options.NAMES``: ``slots``, ``queue``, ``name``, ``output`` …) or their own; True for a
        flag, a list where bsub takes one several times. ``ranks=4`` starts an MPI program on 4 slots, ``gpus=2`` asks for GPUs.
        """
        return self.submit_many([command], cwd=cwd, env=env, **options)[0]

    def submit_many(
        self,
        commands: Iterable[Command],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        **options: object,
    ) -> list[Job]:
        """Submit commands with the same options, in this order: thousands in one ask.

        Raises Refused if any is refused; its ``jobs`` are those that were submitted, and so are those of any other LavaError.
        """
        if isinstance(commands, (str, bytes)):
            raise TypeError("submit_many takes a list of commands; submit takes one")
        found = options_of(options)
        lines = [command_line(command) for command in commands]
        for line in lines:
            refuse_bytes("The command", line)
        common = self.frame("", found, cwd, env)
        self.follower.begin(self.link)
        rows: list[dict[str, Any]] = [{} for _ in lines]
        try:
            for begin in range(0, len(lines), MOST_AT_ONCE):
                self._submit(common, lines, range(begin, min(begin + MOST_AT_ONCE, len(lines))), rows)
        except LavaError as error:
            error.jobs = self._jobs(rows)
            raise
        jobs = self._jobs(rows)
        if len(jobs) < len(lines):
            raise Refused(next(str(row.get("why") or "Refused") for row in rows if not row.get("job")), jobs)
        return jobs

    def _jobs(self, rows: list[dict[str, Any]]) -> list[Job]:
        return [Job(self, str(row["job"]), str(row.get("queue", ""))) for row in rows if row.get("job")]

    def _submit(self, common: dict[str, Any], lines: list[str], places: Iterable[int], rows: list[dict[str, Any]]) -> None:
        """Submit the lines at ``places``, some again where lava wants to be asked again; ``rows`` gets what becomes of each."""
        left = list(places)
        while left:
            for place, row in zip(left, self.link.submit_many(common, [lines[place] for place in left])):
                rows[place] = row
            left = [place for place in left if rows[place].get("retry")]
            if left and atexit.wait(min(float(rows[place]["retry"]) for place in left)):
                break

    def job(self, id: str | int) -> Job:
        """A job that was submitted before, also elsewhere, by this user. Raises Refused where bjobs does not know it."""
        # 0 is all jobs where bkill and bjobs take it, also with blanks around it
        if not str(id).strip().strip("0") or not self.link.rows([str(id)], "jobid"):
            raise Refused(f"Job <{id}> is not found")
        try:
            return Job(self, str(id), read=True)
        except ValueError:
            raise Refused(f"Job <{id}> names several elements") from None
