"""Pre- and post-execution commands: copies of files nearest to the job, the queue's around the job's own, a host's outside.

Rule: pure; each is one command of /bin/sh, so that the shepherd knows nothing of levels.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent.launch.command import quote

LATE = 98
"""Exit code of a pre-execution command that took too long (LSF's)."""


def pre_exec(
    commands: Sequence[str], checkpoint_dir: str = "", copies: str = "", checkpoint_of: str = "", seconds: int = 0
) -> str | None:
    """One shell command for all that runs before the job; the first that fails ends it. ``seconds``: the most it may take."""
    given = [command for command in (*commands, copies) if command]
    parts = given if len(given) == 1 and not checkpoint_dir else [f"(\n{command}\n)" for command in given]
    if checkpoint_dir:
        folder = quote(checkpoint_dir)
        make = f"mkdir -p {folder}"
        if checkpoint_of:
            # a job that is restarted under another number goes on in the folder of the old one
            make = f"{{ [ -e {folder} ] || ln -s {quote(checkpoint_of)} {folder}; }} && [ -d {folder} ]"
        parts.insert(0, make)
    return _within(" && ".join(parts), seconds, LATE) or None


def post_exec(commands: Sequence[str], copies: str = "", seconds: int = 0) -> str | None:
    """One shell command for all that runs after the job; each runs whatever the others did, the last failure is its status."""
    given = [command for command in (copies, *commands) if command]
    if len(given) < 2:
        return _within(given[0], seconds, 0) if given else None
    text = "\n".join([*(f"(\n{command}\n) || lava_failed=$?" for command in given), "exit ${lava_failed:-0}"])
    return _within(text, seconds, 0)


def _within(command: str, seconds: int, late: int) -> str:
    """The command, killed with all in its process group after so many seconds; it ends with ``late`` then, if not 0."""
    if not command or not seconds:
        return command
    line = f"timeout -s KILL {seconds} /bin/sh -c {quote(command)}"
    return f"{line}\nlava_code=$?\n[ $lava_code = 137 ] && exit {late}\nexit $lava_code" if late else line
