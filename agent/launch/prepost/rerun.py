"""What of the commands after a job is left out where the job runs again, or the attempt was lost (LSB_DISABLE_RERUN_POST_EXEC).

Rule: those of hosts always run, as they clean up the host. Which others do is known when they are to run, so the shell asks.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent.launch.site import Site
from agent.starter.part.task_start import HOSTS_ONLY
from config.model.values import RequeueExit
from proto import agent_pb2 as pb

_LOST = f'[ -n "${HOSTS_ONLY}" ]'
_CODE = "$((LSB_JOBEXIT_STAT & 127 ? 128 + (LSB_JOBEXIT_STAT & 127) : LSB_JOBEXIT_STAT >> 8))"
"""The exit value of the job, as REQUEUE_EXIT_VALUES counts it."""


def requeue_of(text: pb.JobText) -> RequeueExit:
    """The exit values with which a job runs again."""
    try:
        return RequeueExit.parse(text.requeue_exit_values)
    except ValueError:  # of a master that knows other forms
        return RequeueExit()


def after(text: pb.JobText, of_site: str, commands: Sequence[str], site: Site) -> tuple[str, ...]:
    """The ``commands`` after a job on its first host with lava's own (``of_site``) before them, each with when it runs."""
    hosts = tuple(text.host_post_exec)
    of_hosts = hosts if hosts and tuple(commands[-len(hosts) :]) == hosts else ()
    of_job = commands[: len(commands) - len(of_hosts)]
    lost = [_LOST] if of_hosts else []
    again = _again(text) if text.leased and site.settings.lsb_disable_rerun_post_exec else []
    return (_unless(lost, of_site), *(_unless([*lost, *again], command) for command in of_job), *of_hosts)


def _again(text: pb.JobText) -> list[str]:
    found = requeue_of(text)
    values = [value for value in range(256) if found.wants(value)]
    return [f"case {_CODE} in {'|'.join(map(str, values))}) ;; *) false ;; esac"] if values else []


def _unless(conditions: list[str], command: str) -> str:
    return " || ".join([*conditions, f"(\n{command}\n)"]) if conditions and command else command
