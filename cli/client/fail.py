"""How a command ends badly: one line for the user and an exit status."""

LSF_FAILED = 255
INTERRUPTED = 130
BROKEN_PIPE = 141


class Fail(Exception):
    """The command ends; ``text`` goes to stderr (nothing where it is empty)."""

    def __init__(self, text: str, status: int = LSF_FAILED) -> None:
        super().__init__(text)
        self.text = text
        self.status = status


class Refused(Fail):
    """The master will not do it; ``text`` is LSF's words."""
