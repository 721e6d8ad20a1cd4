"""``lava completion bash|zsh|fish``: what a shell needs to complete lava's commands, made of the tables that the commands read.

Job ids, queues, hosts, users and applications are asked of the cluster when the key is pressed, for two seconds at most.
"""

from __future__ import annotations

import shlex
import sys

from proto.commands import COMMANDS, INSTALLED
from proto.help.usages import LAVA
from proto.options import OPTIONS

SHELLS = ("bash", "zsh", "fish")
USAGE = f"Usage: lava completion {' | '.join(SHELLS)}"
_ASKS = {
    "jobs": "bjobs -noheader -o jobid",
    "ended": "bjobs -a -noheader -o jobid",
    "queues": "bqueues -noheader -o queue_name",
    "hosts": "bhosts -noheader -o host_name",
    "users": "busers -noheader -o user_name all",
    "names": "lava explain --names",
    "apps": "bapp -noheader | while read -r name rest; do echo $name; done",
}
"""What lists them."""
_VALUES = {"q": "queues", "m": "hosts", "u": "users", "app": "apps"}
"""Options whose value is one of them, in all commands."""
_OF_ENDED = ("bhist", "bacct", "bjobs", "bread", "brequeue")


def _options(command: str) -> list[tuple[str, bool]]:
    """(option with its dash, whether it takes a value) of those that lava supports."""
    if command in ("bsub", "bmod"):
        known = [option for option in OPTIONS if option.only in ("", command) and not option.unsupported]
        return [(f"-{option.name}", option.takes != "flag") for option in known]
    row = COMMANDS[command]
    refused = {*row.refused.split()}
    pairs = [(name, False) for name in row.flags.split()] + [(name, True) for name in row.valued.split()]
    return [(f"-{name}", valued) for name, valued in pairs if name not in refused]


def _words(command: str) -> list[str]:
    """The kinds of what its other arguments are."""
    words = COMMANDS[command].words
    found = []
    if "job_ID" in words:
        found.append("ended" if command in _OF_ENDED else "jobs")
    if "queue_name" in words:
        found.insert(0, "queues")
    if "host_name" in words:
        found.append("hosts")
    if "user_name" in words:
        found.append("users")
    return found


_BASH = """\
# completion of lava's commands; for bash:  eval "$(lava completion bash)"
_lava_list() {{
    case $1 in
{lists}
    esac 2>/dev/null
}}
_lava_ask() {{ timeout 2 bash -c "$1" </dev/null; }}
_lava() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} name=${{COMP_WORDS[0]##*/}}
    local options= kinds= kind= words=
    COMPREPLY=()
    case $name:$before in
{values}
    esac
    case $name in
{commands}
    esac
    if [ "$name" = lava ]; then
        [ "$COMP_CWORD" -gt 1 ] || words='{subcommands}'
        case ${{COMP_WORDS[1]}} in
            why|stats|watch|jupyter|time-left) kinds=ended ;;
            explain) kinds=names ;;
            completion) words='{shells}' ;;
        esac
    fi
    if [ -n "$kind" ]; then
        words=$(_lava_list "$kind")
    elif [[ $word == -* ]]; then
        words=$options
    else
        for kind in $kinds; do words="$words $(_lava_list "$kind")"; done
    fi
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _lava {names}
"""
_ZSH = """\
# completion of lava's commands; for zsh:  eval "$(lava completion zsh)"
(( $+functions[compdef] )) || {{ autoload -Uz compinit && compinit -u; }}
autoload -Uz bashcompinit && bashcompinit
setopt local_options 2>/dev/null
{bash}"""


def bash() -> str:
    """The script for bash; zsh reads it with bashcompinit."""
    indent = " " * 8
    lists = "\n".join(f"{indent}{kind}) _lava_ask {shlex.quote(ask)} ;;" for kind, ask in _ASKS.items())
    commands, values = [], []
    for name in INSTALLED:
        options = " ".join(option for option, _ in _options(name))
        commands.append(f"{indent}{name}) options='{options} -h -V'; kinds='{' '.join(_words(name))}' ;;")
        for option, valued in _options(name):
            if valued and option[1:] in _VALUES:
                values.append(f"{indent}{name}:{option}) kind={_VALUES[option[1:]]} ;;")
    return _BASH.format(
        lists=lists,
        values="\n".join(values),
        commands="\n".join(commands),
        subcommands=" ".join(LAVA),
        shells=" ".join(SHELLS),
        names=" ".join(INSTALLED),
    )


def zsh() -> str:
    """As for bash, by zsh's own reading of it."""
    return _ZSH.format(bash=bash())


def fish() -> str:
    """One line for each option."""
    lines = ["# completion of lava's commands; for fish:  lava completion fish | source"]
    for kind, ask in _ASKS.items():
        lines.append(f"function __lava_{kind}; timeout 2 sh -c {_fish_quoted(ask)} </dev/null 2>/dev/null; end")
    for name in INSTALLED:
        lines.append(f"complete -c {name} -d {_fish_quoted(COMMANDS[name].help)}")
        for kind in _words(name):
            lines.append(f"complete -c {name} -f -a '(__lava_{kind})'")
        for option, valued in _options(name):
            value = f" -x -a '(__lava_{_VALUES[option[1:]]})'" if option[1:] in _VALUES and valued else " -r" if valued else ""
            kind = f"-l {option[2:]}" if option[:2] == "--" else f"-o {option[1:]}"
            lines.append(f"complete -c {name} {kind}{value}")
    first = "__fish_use_subcommand"
    lines += [f"complete -c lava -f -n {first} -a {word}" for word in LAVA]
    lines += ["complete -c lava -f -n '__fish_seen_subcommand_from why stats watch jupyter time-left' -a '(__lava_ended)'"]
    lines += ["complete -c lava -f -n '__fish_seen_subcommand_from explain' -a '(__lava_names)'"]
    lines += [f"complete -c lava -f -n '__fish_seen_subcommand_from completion' -a '{' '.join(SHELLS)}'"]
    return "\n".join(lines) + "\n"


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def main(argv: list[str]) -> int:
    """Exit 0; 255 for a shell that is not known."""
    if argv in (["-h"], ["--help"]):
        print(USAGE)
        return 0
    made = {"bash": bash, "zsh": zsh, "fish": fish}.get(argv[0]) if len(argv) == 1 else None
    if made is None:
        print(f"lava completion: say {', '.join(SHELLS[:-1])} or {SHELLS[-1]}", file=sys.stderr)
        return 255
    print(made(), end="")
    return 0
