"""On which hosts ``blaunch`` starts tasks: from its words and the job's list of hosts.

Rule: pure, apart from the host file and the search in PATH. The job's shepherd decides whether a host belongs to the job.
"""

from __future__ import annotations

import os

from cli.client.context import Fail

USAGE = (
    'Usage: blaunch [-n] [-z "host_name ..." | -u host_file | host_name]\n'
    "               [-no-shell | -use-login-shell] command [argument ...]\n"
    "       blaunch [-h] [-V]"
)
FLAGS = ("n", "no-shell", "use-login-shell", "h", "V", "help", "-help")
VALUED = ("z", "u")


def read_words(argv: list[str]) -> tuple[dict[str, str], list[str]]:
    """(options, the words behind them). Options end at the first other word: the command may have options too. Raises Fail."""
    options: dict[str, str] = {}
    at = 0
    while at < len(argv) and argv[at].startswith("-") and argv[at] != "-":
        name = argv[at][1:]
        at += 1
        if name == "-":
            break
        if name in VALUED:
            if at >= len(argv):
                raise Fail(f"-{name}: option requires an argument\n{USAGE}")
            options[name] = argv[at]
            at += 1
        elif name in FLAGS:
            options[name] = ""
        elif name == "n-no-shell":
            options["n"] = options["no-shell"] = ""
        else:
            raise Fail(f"-{name}: unknown option\n{USAGE}")
    if "z" in options and "u" in options:
        raise Fail(f"-z and -u: only one of them can be given\n{USAGE}")
    if "no-shell" in options and "use-login-shell" in options:
        raise Fail(f"-no-shell and -use-login-shell: only one of them can be given\n{USAGE}")
    return options, argv[at:]


def slots_of(text: str) -> list[tuple[str, int]]:
    """LSB_MCPU_HOSTS, ``host1 2 host2 2 `` -> [(host1, 2), (host2, 2)]. Raises Fail."""
    words = text.split()
    try:
        return [(words[at], int(words[at + 1])) for at in range(0, len(words), 2)]
    except (IndexError, ValueError):
        raise Fail(f"LSB_MCPU_HOSTS is not a list of hosts and slots: {text[:80]}") from None


LONGEST = 1 << 20
"""Characters of a host file."""


def read_hostfile(path: str) -> list[str]:
    """The hosts of a host file: the first word of each line; ``#`` begins a comment. Raises Fail."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            text = file.read(LONGEST + 1)
    except OSError as error:
        raise Fail(f"{path}: {error.strerror}") from None
    if len(text) > LONGEST:
        raise Fail(f"{path}: larger than {LONGEST} characters")
    lines = text.splitlines()
    hosts = [words[0] for line in lines if (words := line.partition("#")[0].split())]
    if not hosts:
        raise Fail(f"{path}: no host is in it")
    return hosts


def _short(name: str) -> str:
    return name if name[:1].isdigit() else name.partition(".")[0].lower()


def is_host(word: str, hosts: list[str], here: tuple[str, ...]) -> bool:
    """Whether a word names a host of the job, or this host (``here``: its names)."""
    return word in hosts or word in here or any(_short(word) == _short(host) for host in hosts if word)


def is_program(word: str, path: str) -> bool:
    """Whether a shell would find a program of this name, or the word cannot be a host's name."""
    if not all(char.isalnum() or char in "-._:" for char in word):
        return True
    return any(os.access(os.path.join(folder, word), os.X_OK) for folder in path.split(":") if folder)


def by_name(chosen: list[str], hosts: list[str], here: tuple[str, ...], peers: str) -> list[str]:
    """The names of hosts of which some are given by their addresses. ``peers``: LAVA_PEERS, ``name:ranks:address`` of each."""
    found: dict[str, str] = {}
    for word in peers.split():
        name, _, rest = word.partition(":")
        found.setdefault(rest.partition(":")[2], name)
    return [host if host in hosts or host in here else found.get(host, host) for host in chosen]


def choose(
    options: dict[str, str], words: list[str], slots: list[tuple[str, int]], here: tuple[str, ...], path: str
) -> tuple[list[str], list[str]]:
    """(one host for each task, the command). ``here``: names of this host. Raises Fail."""
    hosts = [host for host, _ in slots]
    if "z" in options:
        chosen = options["z"].split()
        if not chosen:
            raise Fail(f"-z: no host is named\n{USAGE}")
    elif "u" in options:
        chosen = read_hostfile(options["u"])
    elif words and (is_host(words[0], hosts, here) or (len(words) > 1 and not is_program(words[0], path))):
        chosen, words = words[:1], words[1:]
    else:
        chosen = [host for host, count in slots for _ in range(count)]
    if not words or not any(words):
        raise Fail(f"a command is missing\n{USAGE}")
    return chosen, words
