"""How a command fails: one line for the user and an exit status."""

LSF_FAILED = 255
INTERRUPTED = 130
BROKEN_PIPE = 141


class Fail(Exception):
    """The command ends with ``status``; ``text``, unless "", goes to stderr."""

    def __init__(self, text: str, status: int = LSF_FAILED) -> None:
        super().__init__(text)
        self.text = text
        self.status = status


class Refused(Fail):
    """The master refuses, in LSF's words."""
