"""profile.lsf and cshrc.lsf of a cluster, which users of LSF source to get its commands.

Rule: sourcing one twice changes nothing more.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

_SH = """\
# profile.lsf: puts this cluster into a shell of the sh family:  . profile.lsf
{exports}case ":${{PATH:-}}:" in
*":$LSF_BINDIR:"*) ;;
*) PATH="$LSF_BINDIR${{PATH:+:$PATH}}" ;;
esac
export PATH
"""

_CSH = """\
# cshrc.lsf: puts this cluster into csh or tcsh:  source cshrc.lsf
{exports}if ( ! $?PATH ) setenv PATH /usr/bin:/bin
echo ":${{PATH}}:" | grep -qF ":${{LSF_BINDIR}}:"
if ( $status != 0 ) setenv PATH "${{LSF_BINDIR}}:${{PATH}}"
"""


def profile_lsf(places: Mapping[str, str]) -> str:
    """The text for sh, bash, ksh and zsh."""
    return _SH.format(exports="".join(f"export {name}={shlex.quote(value)}\n" for name, value in places.items()))


def cshrc_lsf(places: Mapping[str, str]) -> str:
    """The text for csh and tcsh."""
    return _CSH.format(exports="".join(f"setenv {name} {_csh_word(value)}\n" for name, value in places.items()))


def _csh_word(value: str) -> str:
    quoted = value.replace("'", "'\\''").replace("!", "\\!")
    return f"'{quoted}'"


def write_profiles(confdir: Path, places: Mapping[str, str]) -> None:
    """Write both, unless the site has its own. Raises OSError."""
    for name, text in (("profile.lsf", profile_lsf(places)), ("cshrc.lsf", cshrc_lsf(places))):
        if not (confdir / name).exists():
            (confdir / name).write_text(text)
