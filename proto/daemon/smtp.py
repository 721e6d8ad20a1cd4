"""``python -I smtp.py SERVER[:PORT] FROM TO``: send the message on standard input, where a host has no sendmail.

Rule: standard library only; a process of its own, so that nobody waits for a mail server: a part of a job, as its
user, or a child of lavad, as the administrator.
"""

from __future__ import annotations

import contextlib
import smtplib
import sys

SECONDS = 60.0


def send(server: str, sender: str, to: str, message: bytes) -> None:
    """One message; OSError or SMTPException when the server does not take it."""
    host, _, port = server.rpartition(":") if server.rpartition(":")[2].isdecimal() else (server, "", "25")
    link = smtplib.SMTP(host, int(port), timeout=SECONDS)
    try:
        link.sendmail(sender, to.replace(",", " ").split(), message.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))
        # It has been taken: what is said to the good-bye is of no importance.
        with contextlib.suppress(OSError, smtplib.SMTPException):
            link.quit()
    finally:
        link.close()


def main() -> int:
    """The program: 0, or 75 (to be tried again) with a line on standard error."""
    server, sender, to = sys.argv[1:4]
    try:
        send(server, sender, to, sys.stdin.buffer.read())
    except (OSError, smtplib.SMTPException) as error:
        sys.stderr.write(f"{server}: {error}\n")
        return 75
    return 0


if __name__ == "__main__":
    sys.exit(main())
