"""The cluster: submits jobs, finds them again, kills them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lava_client.errors import Refused
from lava_client.job import Job
from lava_client.options import command_line, options_of, submission
from lava_client.session import Session

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Command = str | Sequence[str]
    """A shell command, or the words of a command."""


class Cluster(Session):
    """The cluster that this process's environment names (LSF_ENVDIR, as ``lava env`` sets it).

    ``environ``: another environment than this process's; jobs get it too. ``timeout``: seconds that a master which is away
    is waited for before Unavailable is raised; None: for ever, as commands do. Raises Unavailable where there is no cluster.
    """

    def submit(self, command: Command, *, cwd: str | None = None, env: Mapping[str, str] | None = None, **options: object) -> Job:
        """Submit a shell command, or the words of one, as bsub does. Raises Refused, in bsub's words.

        ``cwd``: its folder, this process's unless given; ``env``: variables beside those of this process. Options are bsub's,
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
        """Submit commands with the same options, in this order. Raises Refused at the first that is refused."""
        found = options_of(options)
        self.follower.begin(self.link)
        jobs = []
        for command in commands:
            answer = self.link.change(submission(command_line(command), found, self.environ, cwd, env))
            jobs.append(Job(self, str(answer["job"]), str(answer.get("queue", ""))))
        return jobs

    def job(self, id: str | int) -> Job:
        """A job that was submitted before, also elsewhere, by this user. Raises Refused where bjobs does not know it."""
        if not self.rows([str(id)], "jobid"):
            raise Refused(f"Job <{id}> is not found")
        return Job(self, str(id), read=True)

    def __repr__(self) -> str:
        return f"<Cluster {self.environ.get('LSF_ENVDIR', '')}>"
