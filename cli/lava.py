"""``lava``: its subcommands, as ``proto/commands.py`` has them. Here are those about a cluster on this machine."""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module
from pathlib import Path

from cli.local.folder import ROOT, CannotUp, Folder, default_folder
from cli.local.status import status_lines, status_words
from cli.local.up import Wanted, down, up
from config.lsfconf import find_envdir
from proto.commands import LOCAL, SUBCOMMANDS, Subcommand
from proto.standard_files import with_standard_files
from proto.version import PRODUCT

_HERE = tuple(row.name for row in SUBCOMMANDS.values() if row.module == LOCAL)
_ASKS_NO_CLUSTER = ("explain",)
_SOURCES = ("--dir", "--database", "--conf", "--database-file", "--trace", "--history")
"""Options of whatif and replay that say what they read."""


def _number(text: str, least: int, most: int) -> int:
    if not (text.isascii() and text.isdecimal() and least <= int(text[:9]) <= most):
        raise argparse.ArgumentTypeError(f"{text} is no number between {least} and {most}")
    return int(text)


def _count(text: str) -> int:
    return _number(text, 1, 1000)


def _gpus(text: str) -> int:
    return _number(text, 0, 64)


def _port(text: str) -> int:
    return _number(text, 0, 65535)


def parser() -> argparse.ArgumentParser:
    """The options of up, down, env, status and certs; the other subcommands read theirs themselves."""
    lava = argparse.ArgumentParser(prog="lava", description="A lava cluster on this machine.")
    lava.add_argument("-V", "--version", action="version", version=PRODUCT)
    commands = lava.add_subparsers(dest="command", required=True, metavar="up | down | env | status | run | why | …")
    for name in _HERE:
        command = commands.add_parser(name, help=SUBCOMMANDS[name].help)
        if name == "certs":
            _add_certs(command)
        else:
            command.add_argument("--dir", default="", help="the cluster's folder (default: under the state directory)")
        if name == "up":
            _add_up(command)
    for row in SUBCOMMANDS.values():
        if row.name not in _HERE:
            commands.add_parser(row.name, help=row.help, add_help=False)
    return lava


def _add_up(command: argparse.ArgumentParser) -> None:
    command.add_argument("--hosts", type=_count, default=0, help="how many hosts (default: 1)")
    command.add_argument("--slots", type=_count, default=0, help="slots of each host (default: cores)")
    command.add_argument("--database", default="", help="an SQLAlchemy URL, or 'postgres' for a private one")
    command.add_argument("--masters", type=_count, default=0, help="masters, of which all but one stand by (default: 1)")
    command.add_argument("--conf", default="", help="a site's LSF configuration folder")
    command.add_argument("--web", type=_port, nargs="?", const=0, default=-1, metavar="PORT", help="also serve the page")
    command.add_argument("--gpus", type=_gpus, default=-1, help="simulated GPUs on each host")


def _add_certs(certs: argparse.ArgumentParser) -> None:
    certs.add_argument("--out", required=True, help="folder for the authority, keys and certificates")
    certs.add_argument("--cluster", default="lava", help="the cluster's name (default: lava)")
    certs.add_argument("--master", nargs="+", default=[], help="names and addresses of the masters, as agents dial them")
    certs.add_argument("--hosts", nargs="*", default=[], help="hosts that get a certificate for their agent")
    certs.add_argument(
        "--renew", nargs="*", metavar="NAME", help="new keys and certificates for these (master, hosts), or for all"
    )
    certs.add_argument(
        "--revoke", nargs="+", default=[], metavar="HOST", help="put all certificates of these hosts on the list ca.crl"
    )


def main(argv: list[str] | None = None) -> int:
    """Exit 0, 1 with one line on stderr (``up`` then prints ``false``: eval fails too), 255 for words that do not read, and where
    what is to be read finds no room.
    """
    return with_standard_files(_main, sys.argv[1:] if argv is None else argv)


def _main(words: list[str]) -> int:
    if words[:1] == ["help"]:  # as git, cargo and systemctl have it
        words = [*words[1:2], "-h"]
    row = SUBCOMMANDS.get(words[0]) if words else None
    if row is None or row.module == LOCAL:
        return _local(words)
    if row.of_lavad:
        return _exec_lavad(row, words[1:])
    shared = sum(other.module == row.module for other in SUBCOMMANDS.values()) > 1
    return int(import_module(row.module).main(words[1:], *([row.name] if shared else [])))


def _local(words: list[str]) -> int:
    """up, down, env, status or certs."""
    try:
        options = parser().parse_args(words)
    except SystemExit as ended:
        if ended.code and words[:1] == ["up"]:
            print("false")
        if ended.code and sys.stderr.isatty():
            sys.stderr.write(_meant(words))
        return 255 if ended.code else 0
    if options.command == "certs":
        return _certs(options)
    folder = Folder(Path(options.dir) if options.dir else default_folder(os.environ))
    if options.command == "status" and not options.dir and is_of_a_site(folder):
        from cli.listing import main as listing

        return listing([], "status")
    try:
        return _run(options, folder)
    except (CannotUp, OSError, ValueError) as error:
        if options.command == "up":
            print("false")
        print(f"lava {options.command}: {_words(error)}", file=sys.stderr)
        return 1


def is_of_a_site(folder: Folder) -> bool:
    """Whether the environment, or this machine, is of another cluster than the one of this folder, or of none of ``lava up``."""
    if folder.find_shape() is None:
        return find_envdir(os.environ) is not None
    named = os.environ.get("LSF_ENVDIR", "")
    return bool(named) and os.path.realpath(named) != os.path.realpath(folder.conf)


def _words(error: Exception) -> str:
    return f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else str(error)


def _meant(words: list[str]) -> str:
    """The line behind a refusal: which subcommand or option was meant."""
    from cli.client.hints import closest, meant

    known = parser().parse_known_args([words[0]])[0] if words[:1] in [[name] for name in _HERE if name != "certs"] else None
    if known is None:
        return meant(closest(words[0], [*SUBCOMMANDS])) if words and words[0] not in SUBCOMMANDS else ""
    options = [f"--{name.replace('_', '-')}" for name in vars(known) if name != "command"]
    wrong = next((word.partition("=")[0] for word in words[1:] if word[:2] == "--" and word.partition("=")[0] not in options), "")
    return meant(closest(wrong, options)) if wrong else ""


def _exec_lavad(row: Subcommand, argv: list[str]) -> int:
    """exec() the ``main`` of a module of lavad, which the commands must not import. Returns only where that fails.

    Without a word that names a cluster or a trace, the cluster of ``lava env`` is meant.
    """
    code = (
        f"import sys; sys.path.insert(0, sys.argv.pop(1)); from proto.standard_files import with_standard_files; "
        f"from {row.module} import main; sys.exit(with_standard_files(main, sys.argv[1:]))"
    )
    folder = os.environ.get("LAVA_DIR", "")
    named = any(word.partition("=")[0] in _SOURCES for word in argv)
    words = [*argv, f"--dir={folder}"] if folder and not named and row.name not in _ASKS_NO_CLUSTER else argv
    try:
        os.execv(sys.executable, [sys.executable, "-IXutf8", "-c", code, str(ROOT), *words])
    except (OSError, ValueError) as error:
        print(f"lava {row.name}: {sys.executable}: {error}", file=sys.stderr)
        return 1


def _certs(options: argparse.Namespace) -> int:
    from cli.local import certs  # cryptography takes its time to load

    folder = Path(options.out)
    try:
        if not (options.master or options.hosts or options.revoke or options.renew is not None):
            raise ValueError("say --master, --hosts, --renew or --revoke")
        if options.revoke:
            print(certs.revoke(folder, options.revoke))
        made = certs.renew(folder, options.renew) if options.renew is not None else []
        made += certs.make(folder, options.cluster, options.master, options.hosts)
    except (OSError, ValueError) as error:
        print(f"lava certs: {_words(error)}", file=sys.stderr)
        return 1
    for name in made:
        print(f"{options.out}/{name}.crt")
    return 0


def _run(options: argparse.Namespace, folder: Folder) -> int:
    if options.command == "up":
        up(
            folder,
            Wanted(options.hosts, options.slots, options.database, options.masters, options.conf, options.gpus, options.web),
        )
        print(folder.exports(), end="")
    elif options.command == "down":
        if not folder.path.is_dir():
            print(f"lava down: {folder.path}: no cluster was made here", file=sys.stderr)
        down(folder)
    elif folder.find_shape() is None:
        raise CannotUp(f"{folder.path}: no cluster was made here (lava up makes one)")
    elif options.command == "env":
        print(folder.exports(), end="")
    else:
        print("\n".join(status_lines(folder)))
        words = status_words(folder)
        print(words, end="")
        if not words:
            print("nothing is wrong with the cluster", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
