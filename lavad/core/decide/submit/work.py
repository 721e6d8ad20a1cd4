"""What a job runs: the sizes of its command and script."""

from __future__ import annotations

from config.model.params import Params
from lavad.core.lang.asks import Refused
from lavad.core.lang.bounds import MAX_COMMAND


def check_work(params: Params, command: str, script: str) -> None:
    """Raises Refused where the command or the script is too long."""
    if "\0" in command:
        raise Refused("Bad command")
    if len(command) > MAX_COMMAND:
        raise Refused("The command is too long")
    most = params.lava_max_script << 20
    if len(script) > most or (4 * len(script) > most and len(script.encode(errors="surrogatepass")) > most):
        raise Refused(f"The job script is larger than {params.lava_max_script} MB (LAVA_MAX_SCRIPT)")
