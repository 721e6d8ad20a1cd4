"""lsf.sudoers of this host: as whom the pre- and post-execution commands of queues, and those of hosts, run.

Rule: what it allows is root's to say. Only a file that nobody but root can change counts, and only an agent of root reads it.
"""

from __future__ import annotations

from agent.launch.accounts import look_up
from agent.launch.site import Site, User
from config.lsfconf import parse_lsf_conf
from config.programs.owner import only_root_writes
from proto import agent_pb2 as pb
from proto.names import NoAnswer

FILE = "/etc/lsf.sudoers"
PARAMETER = "LSB_PRE_POST_EXEC_USER"


class NotUsable(Exception):
    """The file cannot be obeyed; the text is one line that names it."""


def exec_user(path: str = FILE) -> User | None:
    """The user of LSB_PRE_POST_EXEC_USER, None where the file is not there or names none. Raises NotUsable.

    Asks the directory of users, and may wait for it.
    """
    name = _named(path)
    if not name:
        return None
    try:
        user = look_up(name)
    except NoAnswer as error:
        raise NotUsable(f"{path}: {PARAMETER}: user {name} cannot be looked up now: {error}") from None
    if user is None:
        raise NotUsable(f"{path}: {PARAMETER}: this host has no user {name}")
    return user


def _named(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace", newline="\n") as file:
            if not only_root_writes(path):
                raise NotUsable(f"{path}: it must belong to root, and nobody else may write to it")
            text = file.read()
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise NotUsable(f"{path}: {error.strerror}") from None
    return {name: value for name, value, _ in parse_lsf_conf(text)[0]}.get(PARAMETER, "")


def runs_as(text: pb.JobText, user: User, site: Site) -> tuple[User | None, str]:
    """(As whom the commands of queue and hosts around a job run, None: as the job's user; why they may not, "" if they may).

    PRE_POST_EXEC_USER of a queue goes before lsf.sudoers, but names no other user than the job's and the one that is named there.
    """
    if not (text.host_pre_exec or text.host_post_exec or text.queue_pre_exec or text.queue_post_exec):
        return None, ""
    wanted, allowed = text.pre_post_exec_user, site.exec_user
    if wanted in ("", allowed.name if allowed is not None else ""):
        return (None if allowed is None or allowed.name == user.name else allowed), ""
    if wanted == user.name:
        return None, ""
    return None, (
        f"host {site.host} runs no commands of queue {text.queue} as {wanted} (PRE_POST_EXEC_USER): "
        f"its lsf.sudoers does not name {wanted} as {PARAMETER}"
    )
