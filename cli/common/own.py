"""What a submission takes from the caller besides words: the input file of ``-is``, the limits of ``-ul``."""

from __future__ import annotations

from cli.common.fail import Fail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.common.context import Context
    from cli.common.options import Options

MAX_INPUT = 6 << 20


def add_own(context: Context, options: Options) -> None:
    """Replace the two options by what they mean here."""
    name = options.get("is")
    if isinstance(name, str):
        options["is"] = [name, _in_base64(context, name)]
    if options.get("ul"):
        options["ul"] = _limits()


def _in_base64(context: Context, name: str) -> str:
    from binascii import b2a_base64

    try:
        with open(context.path(name), "rb") as file:
            data = file.read(MAX_INPUT + 1)
    except (OSError, ValueError) as error:
        raise Fail(f"{name}: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > MAX_INPUT:
        raise Fail(f"{name}: larger than {MAX_INPUT} bytes; use -i")
    return b2a_base64(data, newline=False).decode("ascii")


def _limits() -> str:
    """The soft limits that are set, in KB and seconds."""
    import resource

    kinds = (("core", "CORE", 1024), ("cpu", "CPU", 1), ("data", "DATA", 1024), ("file", "FSIZE", 1024), ("stack", "STACK", 1024))
    found = []
    for name, kind, unit in kinds:
        soft = resource.getrlimit(getattr(resource, f"RLIMIT_{kind}"))[0]
        if soft != resource.RLIM_INFINITY:
            found.append(f"{name}={soft // unit}")
    return " ".join(found)
