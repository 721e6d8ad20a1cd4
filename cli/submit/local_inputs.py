"""Local inputs of a submission: the file of ``-is``, the hosts of ``-hostfile``, the caller's limits of ``-ul``."""

from __future__ import annotations

from cli.client.context import Context, Fail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.client.options import Options

MAX_INPUT = 6 << 20


def add_local_inputs(context: Context, options: Options) -> None:
    """Replace the three options by what they mean on this host."""
    name = options.get("is")
    if isinstance(name, str):
        options["is"] = [name, _in_base64(context, name)]
    name = options.get("hostfile")
    if isinstance(name, str):
        options["hostfile"] = [name, *_host_lines(context, name, options)]
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


def _host_lines(context: Context, name: str, options: Options) -> list[str]:
    """``host slots`` for each line of a host file; slots are 1 where it does not say."""
    for rival in ("n", "m", "R", "ext"):
        if rival in options:
            raise Fail(f"-hostfile and -{rival} cannot be given together")
    try:
        with open(context.path(name), encoding="utf-8", errors="replace") as file:
            lines = file.read(MAX_INPUT).splitlines()
    except (OSError, ValueError) as error:
        raise Fail(f"{name}: {getattr(error, 'strerror', None) or error}") from None
    found = []
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if len(words) > 2:
            raise Fail(f"{name}: line {number}: not a host and its slots")
        if words:
            found.append(f"{words[0]} {words[1] if len(words) > 1 else 1}")
    if not found:
        raise Fail(f"{name}: no host is in it")
    return found


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
