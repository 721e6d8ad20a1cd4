"""Pre- and post-execution commands: the queue's go around the job's own."""

from __future__ import annotations

from agent.launch.command import quote


def pre_exec(queue: str, job: str, checkpoint_dir: str = "") -> str | None:
    """One shell command for all that runs before the job; the first that fails ends it."""
    given = [command for command in (queue, job) if command]
    commands = given if len(given) == 1 and not checkpoint_dir else [f"(\n{command}\n)" for command in given]
    if checkpoint_dir:
        commands.insert(0, f"mkdir -p {quote(checkpoint_dir)}")
    return " && ".join(commands) or None


def post_exec(job: str, queue: str) -> str | None:
    """One shell command for all that runs after the job; each runs whatever the other did."""
    return "\n".join(f"(\n{command}\n)" for command in (job, queue) if command) or None
