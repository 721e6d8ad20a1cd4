"""Who gets mail of a job."""

from __future__ import annotations

from lavad.core.job.spec import JobText, Spec


def mail_to(spec: Spec, text: JobText, pattern: str) -> str:
    """Who gets mail of a job: ``-u``, else its user as LSB_MAILTO has it (!U user, !H host of submission).

    "" where LSF sends none: its report goes to the file of ``-o``.
    """
    wanted = text.notify_start or text.notify_end or text.notify or not (text.output or text.interactive)
    own = pattern.replace("!H", spec.from_host).replace("!U", spec.user) if pattern else spec.user
    return (text.mail_user or own) if wanted else ""
