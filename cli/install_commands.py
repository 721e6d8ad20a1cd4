"""`python -m cli.install_commands BINDIR [--python P] [--root R]`: write one small executable for each command.

Rule: a command starts Python isolated (no PYTHONPATH, no current folder, no user's site, no site-packages), imports its
own module and nothing else; the modules are compiled beforehand, since a user may not write beside them.
"""

from __future__ import annotations

import argparse
import os
import py_compile
import sys

COMMANDS = (
    "bsub",
    "bjobs",
    "bkill",
    "bstop",
    "bresume",
    "bswitch",
    "bmod",
    "btop",
    "bbot",
    "brequeue",
    "bmig",
    "bchkpnt",
    "bpeek",
    "bhist",
    "bhosts",
    "bhpart",
    "bqueues",
    "busers",
    "bparams",
    "bugroup",
    "bmgroup",
    "bacct",
    "bapp",
    "bjdepinfo",
    "bjgroup",
    "blimits",
    "badmin",
    "brestart",
    "lsid",
    "lsload",
    "lshosts",
    "lsclusters",
    "lsinfo",
    "lsadmin",
    "lava",
    "blaunch",
    "mpirun.lsf",
    "bgadd",
    "bgdel",
    "bgmod",
    "bjdep",
    "bpost",
    "bread",
    "bstatus",
    "brun",
    "bwait",
    "bslots",
    "lseligible",
    "lsplace",
    "lsrun",
    "lsgrun",
    "bresize",
    "brsvadd",
    "brsvdel",
    "brsvmod",
    "brsvs",
    "bresources",
    "bclusters",
    "bsla",
    "lsacct",
    "lsacctmrg",
)
MODULES = {"lava": "cli.lava", "mpirun.lsf": "cli.mpirun_lsf"}
WITH_PACKAGES = ("lava",)
OPTIONS = "-ISXutf8"
OPTIONS_WITH_PACKAGES = "-IXutf8"
LONGEST_SHEBANG = 127

BODY = """\
import os, sys
sys.path.insert(0, {root!r})
try:
    from {module} import main
    status = main({words})
except KeyboardInterrupt:
    status = 130
{leave}
"""
TRAMPOLINE = """\
#!/bin/sh
''':'
exec {python} {options} "$0" "$@"
'''
"""


def launcher(command: str, python: str, root: str) -> str:
    """The text of one command. A path that no `#!` line can hold goes through sh."""
    packages = command in WITH_PACKAGES
    options = OPTIONS_WITH_PACKAGES if packages else OPTIONS
    line = f"#!{python} {options}\n"
    if len(os.fsencode(line)) > LONGEST_SHEBANG or any(char.isspace() for char in python):
        line = TRAMPOLINE.format(python="'" + python.replace("'", "'\\''") + "'", options=options)
    # What a command printed went out unbuffered, so that the interpreter's orderly end would only cost time.
    leave = "sys.exit(status)" if packages else "os._exit(status)"
    module = MODULES.get(command, f"cli.{command}")
    return line + BODY.format(root=root, module=module, words="" if packages else "sys.argv[1:]", leave=leave)


def install(folder: str, python: str, root: str) -> list[str]:
    """Write the commands whose modules are there; their names."""
    os.makedirs(folder, exist_ok=True)
    written = []
    for command in COMMANDS:
        module = MODULES.get(command, f"cli.{command}").replace(".", "/") + ".py"
        if os.path.exists(os.path.join(root, module)):
            _write(os.path.join(folder, command), launcher(command, python, root))
            written.append(command)
    return written


def _write(path: str, text: str) -> None:
    """In one move: another process may be starting the command right now."""
    part = f"{path}.{os.getpid()}"
    with open(part, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)
    os.chmod(part, 0o755)
    os.replace(part, path)


def compile_modules(root: str) -> None:
    """Write the .pyc files of what commands import; a folder that cannot be written is left as it is."""
    for package in ("cli", "config"):
        for folder, _, names in sorted(os.walk(os.path.join(root, package))):
            for path in (os.path.join(folder, name) for name in sorted(names) if name.endswith(".py")):
                try:
                    py_compile.compile(path, doraise=True)
                except (OSError, py_compile.PyCompileError) as error:
                    print(f"{path}: not compiled: {error}", file=sys.stderr)


def main(argv: list[str] | None = None) -> int:
    """The program."""
    parser = argparse.ArgumentParser(prog="cli.install_commands", description="Write lava's commands into a folder.")
    parser.add_argument("folder", metavar="BINDIR")
    parser.add_argument("--python", default=sys.executable, help="the interpreter (default: this one)")
    parser.add_argument("--root", default=os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    given = parser.parse_args(argv)
    try:
        written = install(given.folder, os.path.abspath(given.python), os.path.abspath(given.root))
        compile_modules(os.path.abspath(given.root))
    except OSError as error:
        print(f"{error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    print(f"{len(written)} commands in {given.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
