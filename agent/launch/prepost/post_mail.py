"""What runs after a job on its first host, as its user, and the mail of it (LSB_POSTEXEC_SEND_MAIL).

Rule: the mail is sent where there is a post-execution command, after all of them, whatever becomes of them; it changes nothing in
how they end.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent.launch.command import quote
from agent.launch.prepost import commands, rerun
from agent.launch.site import Site
from proto import agent_pb2 as pb
from proto.daemon import mailing

MAILER_SECONDS = 30
"""What a mailer that hangs costs."""
_ENDED = "Subject: Job %s: post-execution of <%s> in cluster <%s> ended with %s\n\n"
_ABOUT = "The post-execution commands of job <%s> of user <%s> in queue <%s> ended on host <%s> with %s.\n"
_OUTPUT = "The output (if any) follows:\n\n"


def post_exec(text: pb.JobText, after: Sequence[str], site: Site) -> str | None:
    """As ``commands.post_exec`` of the commands ``after`` a job on its first host, with lava's own."""
    line = commands.post_exec(rerun.after(text, commands.site_after(text, site), after, site), seconds=text.post_timeout)
    program = mailing.mailer(site.conf) if text.post_mail and any(after) else ""
    return _mailed(line, text, site, program) if line and program else line


def _mailed(line: str, text: pb.JobText, site: Site, program: str) -> str:
    admin = text.admins[0] if text.admins else "lsfadmin"
    job, ended = '"$lava_job"', '"$lava_code"'
    send = " ".join(map(quote, mailing.words(program, admin, text.post_mail)))
    return "\n".join(
        (
            "lava_file=$(mktemp) || lava_file=/dev/null",
            f'(\n{line}\n) >"$lava_file" 2>&1',
            "lava_code=$? lava_job=$LSB_JOBID",
            '[ "${LSB_JOBINDEX:-0}" = 0 ] || lava_job="$LSB_JOBID[$LSB_JOBINDEX]"',
            "{",
            _say(mailing.head(admin, text.post_mail)),
            _say(_ENDED, job, '"$LSB_JOBNAME"', quote(text.cluster), ended),
            _say(_ABOUT, job, quote(text.user), quote(text.queue), quote(site.host), ended),
            _say(_OUTPUT),
            'cat -- "$lava_file"',
            f"}} | timeout -k 1 {MAILER_SECONDS} {send} >/dev/null 2>&1",
            '[ "$lava_file" = /dev/null ] || rm -f -- "$lava_file"',
            'exit "$lava_code"',
        )
    )


def _say(pattern: str, *words: str) -> str:
    """The shell command that prints a pattern of %s with words of the shell; without words, the pattern as it is."""
    return " ".join(("printf", quote(pattern) if words else f"%s {quote(pattern)}", *words))
