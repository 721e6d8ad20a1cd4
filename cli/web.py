"""``lava web`` prints an address that signs its caller in to the page; ``lava token`` prints a token for REST, shows which tokens
there are, and calls them back.
"""

from __future__ import annotations

import argparse
import os
import sys

from cli.client.client import Client, read_conf
from cli.client.context import Context, Fail, of_process
from cli.local.folder import Folder, default_folder
from cli.local.probe import link

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from proto.answers import Result, TokenRow

USUAL = "http://127.0.0.1:16880"
LOOK_SECONDS = 5.0


def parser(what: str) -> argparse.ArgumentParser:
    """The options of ``lava web`` or ``lava token``."""
    found = argparse.ArgumentParser(prog=f"lava {what}")
    found.add_argument("--dir", default="", help="a cluster of lava up (default: the one of this shell)")
    if what == "token":
        found.add_argument("--hours", type=float, default=24.0, help="how long it serves, at most 168 (default 24)")
        found.add_argument("--name", default="", help="what it is for, as --list shows it")
        found.add_argument("--list", action="store_true", help="tokens, sessions of browsers and links that have not ended")
        found.add_argument("--revoke", nargs="+", metavar="ID", default=[], help="call these back")
        found.add_argument("--all", action="store_true", help="call all back: also sessions of browsers")
        found.add_argument("--user", default="", help="with --list and --all: another user's, or of all; for administrators")
    return found


def main(words: list[str], what: str) -> int:
    """Exit 0, 1 with one line on stderr, or 255 for words that do not read."""
    try:
        options = _options(words, what)
    except SystemExit as ended:
        return 255 if ended.code else 0
    try:
        context, folder = find_cluster(options.dir)
        conf = read_conf(context)
        client = Client(context, conf)
        if what == "token" and options.list:
            _show(client.ask({"ask": "listtokens", "user": options.user})["tokens"])
        elif what == "token" and (options.revoke or options.all):
            ask = {"ask": "revoketokens", "ids": options.revoke, "every": options.all, "user": options.user}
            return _called_back(client.change(ask)["results"])
        elif what == "token":
            print(client.ask({"ask": "token", "kind": "api", "seconds": options.hours * 3600, "name": options.name})["token"])
        else:
            address = address_of(conf, folder)
            _look_at(address)
            print(link(address, client.ask({"ask": "token", "kind": "link"})["token"]))
    except (Fail, OSError) as error:
        print(f"lava {what}: {error.text if isinstance(error, Fail) else error}", file=sys.stderr)
        return 1
    return 0


def _options(words: list[str], what: str) -> argparse.Namespace:
    found = parser(what)
    options = found.parse_args(words)
    if what == "token" and options.list + bool(options.revoke) + options.all > 1:
        found.error("one of --list, --revoke and --all")
    if what == "token" and options.user and not (options.list or options.all):
        found.error("--user goes with --list or --all")
    return options


def _show(tokens: list[TokenRow]) -> None:
    from time import localtime, strftime

    def when(at: float | None) -> str:
        return strftime("%b %d %H:%M", localtime(at)) if at is not None else "-"

    for ident, user, kind, made, used, ends, host, name in [
        ("ID", "USER", "KIND", "MADE", "USED", "ENDS", "HOST", "NAME"),
        *(
            (
                row["id"],
                row["user"],
                row["kind"],
                when(row["made"]),
                when(row["used"]),
                when(row["ends"]),
                row["host"],
                row["name"],
            )
            for row in tokens
        ),
    ]:
        print(f"{ident:12} {user:12} {kind:8} {made:13} {used:13} {ends:13} {host:12} {name}".rstrip())


def _called_back(results: list[Result]) -> int:
    for row in results:
        if not row["ok"]:
            print(f"lava token: {row['id']}: {row['why']}", file=sys.stderr)
    done = sum(row["ok"] for row in results)
    print(f"{done} {'token serves' if done == 1 else 'tokens serve'} no more")
    return 0 if done == len(results) else 1


def find_cluster(given: str) -> tuple[Context, Folder | None]:
    """The caller, in the cluster of this folder, of this shell, or of the machine."""
    from pathlib import Path

    context = of_process([])
    folder = Folder(Path(given) if given else default_folder(os.environ))
    # in a shell of ``lava up`` LSF_ENVDIR names the folder's own files
    named = context.environ.get("LSF_ENVDIR") or str(folder.conf)
    if given or (folder.conf.exists() and os.path.realpath(named) == os.path.realpath(folder.conf)):
        if not folder.conf.exists():
            raise Fail(f"{folder.path}: no cluster was made here (lava up makes one)")
        context.environ = {**context.environ, "LSF_ENVDIR": str(folder.conf)}
        return context, folder
    return context, None


def address_of(conf: dict[str, str], folder: Folder | None) -> str:
    """Where the page is: as its process has written, else by lsf.conf. Raises Fail where a cluster of lava up has none."""
    run = conf.get("LAVA_RUNDIR", "")
    for path in ([folder.web_address] if folder is not None else []) + ([_in(run)] if run else []):
        try:
            return path.read_text().strip()
        except OSError:
            continue
    if folder is not None:
        raise Fail(f"no page runs: lava up --dir {folder.path} --web")
    if conf.get("LAVA_WEB_URL"):
        return conf["LAVA_WEB_URL"]
    host, _, port = conf.get("LAVA_WEB_ADDRESS", "").rpartition(":")
    scheme = "https" if conf.get("LAVA_WEB_CERT") else "http"
    return f"{scheme}://{host or '127.0.0.1'}:{port}" if port else USUAL


def _look_at(address: str) -> None:
    """Raises Fail where it is one of this machine, and nothing listens there."""
    from socket import create_connection
    from urllib.parse import urlsplit

    found = urlsplit(address)
    host = found.hostname or ""
    if host != "localhost" and not host.startswith("127."):
        return
    try:
        create_connection((host, found.port or (443 if found.scheme == "https" else 80)), LOOK_SECONDS).close()
    except OSError as error:
        raise Fail(f"no page runs at {address}: {error.strerror or error}") from None


def _in(run: str) -> Path:
    from pathlib import Path

    return Path(run, "web.address")
