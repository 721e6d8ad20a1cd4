"""Pre- and post-execution commands: copies of files nearest to the job, the queue's commands around the job's own."""

from __future__ import annotations

from agent.launch.command import quote


def pre_exec(queue: str, job: str, checkpoint_dir: str = "", copies: str = "", checkpoint_of: str = "") -> str | None:
    """One shell command for all that runs before the job; the first that fails ends it."""
    given = [command for command in (queue, job, copies) if command]
    commands = given if len(given) == 1 and not checkpoint_dir else [f"(\n{command}\n)" for command in given]
    if checkpoint_dir:
        folder = quote(checkpoint_dir)
        make = f"mkdir -p {folder}"
        if checkpoint_of:
            # a job that is restarted under another number goes on in the folder of the old one
            make = f"{{ [ -e {folder} ] || ln -s {quote(checkpoint_of)} {folder}; }} && [ -d {folder} ]"
        commands.insert(0, make)
    return " && ".join(commands) or None


def post_exec(job: str, queue: str, copies: str = "") -> str | None:
    """One shell command for all that runs after the job; each runs whatever the others did, the last failure is its status."""
    given = [command for command in (copies, job, queue) if command]
    if len(given) < 2:
        return given[0] if given else None
    return "\n".join([*(f"(\n{command}\n) || lava_failed=$?" for command in given), "exit ${lava_failed:-0}"])
