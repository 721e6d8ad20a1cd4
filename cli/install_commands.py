"""`python -m cli.install_commands BINDIR [--python P] [--root R]`: write one small executable for each command of
``proto/commands.py`` into BINDIR, and again into BINDIR/../lib/lava/bin, where nothing else lies: that folder goes into PATH.

Rule: a command starts Python isolated (no PYTHONPATH, no current folder, no user's site, no site-packages), imports its
own module and nothing else; the modules are compiled beforehand, since a user may not write beside them.

Where a C compiler is, commands of NATIVE are an executable that goes without the start of Python (``cli/native``), and their
plain form lies in BINDIR/../lib/lava/plain; the library of the starter is made beside its sources.

In a wheel (setup.py) nobody knows yet where Python is: there a command is a line of sh, which reads it from the first line of
``lava-python``, as the installer has written it.
"""

from __future__ import annotations

import argparse
import os
import py_compile
import sys

from cli import manpages
from cli.native.build import LIBRARY, built, built_library, is_current
from proto.commands import COMMANDS, INSTALLED, NATIVE
from proto.whole_file import replace_file

ALONE = os.path.join("lib", "lava", "bin")
"""Below the prefix of an installation: the folder with the commands and nothing else."""
PLAIN = os.path.join("lib", "lava", "plain")
"""As ALONE: the commands in Python that stand behind native ones, and the server of these."""
SERVER, SERVER_MODULE = "lava-commands", "cli.native.server"
WITH_PACKAGES = ("lava",)
OPTIONS = "-ISXutf8"
OPTIONS_WITH_PACKAGES = "-IXutf8"
LONGEST_SHEBANG = 127

BODY = """\
import os, sys
{find_root}sys.path.insert(0, {root})
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
PORTABLE_TRAMPOLINE = """\
#!/bin/sh
''':'
here=$0; [ ! -L "$0" ] || here=$(readlink -f "$0")
read -r python < "${{here%/*}}/{bin}lava-python" || exit 127
[ "$python" != "#!/bin/sh" ] || python="#!$("${{here%/*}}/{bin}lava-python")"
exec "${{python#??}}" {options} "$here" "$@"
'''
"""
FIND_ROOT = """\
prefix = os.path.dirname(os.path.abspath(__file__)){up}
for name in "site-packages", "dist-packages":
    root = os.path.join(prefix, "lib", "python%d.%d" % sys.version_info[:2], name)
    if os.path.exists(os.path.join(root, "cli", "listing.py")):
        break
else:
    import site
    site.main()
"""


def launcher(command: str, python: str, root: str) -> str:
    """The text of one command for an interpreter and the folder that holds lava's packages.

    An interpreter's path that no `#!` line can hold goes through sh.
    """
    options = _options(command)
    line = f"#!{python} {options}\n"
    if len(os.fsencode(line)) > LONGEST_SHEBANG or any(char.isspace() for char in python):
        line = TRAMPOLINE.format(python="'" + python.replace("'", "'\\''") + "'", options=options)
    return line + _body(command, repr(root))


def portable_launcher(command: str, alone: bool) -> str:
    """The text of one command in a wheel: ``alone`` for the folder that holds nothing else, else for the scripts' folder.

    Wherever it is installed, ``lava-python`` lies in the scripts' folder and the packages below the same prefix; where they
    do not (an editable installation), Python's ``site`` finds them, which takes longer.
    """
    depth = len(ALONE.split(os.sep))
    line = PORTABLE_TRAMPOLINE.format(bin="../" * depth + "bin/" if alone else "", options=_options(command))
    up = ".rpartition(os.sep)[0]" * (depth if alone else 1)
    return line + _body(command, "root", FIND_ROOT.format(up=up))


def _options(command: str) -> str:
    return OPTIONS_WITH_PACKAGES if command in WITH_PACKAGES else OPTIONS


def _body(command: str, root: str, find_root: str = "") -> str:
    packages = command in WITH_PACKAGES
    module = SERVER_MODULE if command == SERVER else COMMANDS[command].module
    words = "None" if packages else "sys.argv[1:]"
    if module == "cli.listing":
        words += f", {command!r}"
    # What a command printed went out unbuffered, so that the interpreter's orderly end would only cost time.
    leave = "sys.exit(status)" if packages else "os._exit(status)"
    return BODY.format(find_root=find_root, root=root, module=module, words=words, leave=leave)


def install(folder: str, python: str, root: str, native: bytes | None = None, plain: str = "") -> None:
    """Write every command into a folder; those of NATIVE as the executable ``native``, if there is one. Raises OSError.

    ``plain``: the folder of their plain form.
    """
    os.makedirs(folder, exist_ok=True)
    if native is not None:
        os.makedirs(plain, exist_ok=True)
        for command in (SERVER, *NATIVE):
            write(os.path.join(plain, command), launcher(command, python, root))
    first = ""
    for command in INSTALLED:
        path = os.path.join(folder, command)
        if native is None or command not in NATIVE:
            write(path, launcher(command, python, root))
        elif first:
            link(first, path)
        else:
            write(path, native)
            first = path


def write(path: str, content: str | bytes) -> None:
    """Write an executable in one move: another process may be starting the command right now. Raises OSError."""
    replace_file(path, content, 0o755)


def link(source: str, path: str) -> None:
    """The same executable under another name, in one move. Raises OSError."""
    part = f"{path}.{os.getpid()}"
    os.link(source, part)
    os.replace(part, path)


def compile_modules(root: str) -> None:
    """Write the .pyc files of what commands import; a folder that cannot be written is left as it is."""
    for package in ("cli", "config", "proto"):
        for folder, _, names in sorted(os.walk(os.path.join(root, package))):
            for path in (os.path.join(folder, name) for name in sorted(names) if name.endswith(".py")):
                try:
                    py_compile.compile(path, doraise=True)
                except (OSError, py_compile.PyCompileError) as error:
                    print(f"{path}: not compiled: {error}", file=sys.stderr)


def make_library(root: str, plain: bool = False) -> None:
    """Make the starter's library, if it is not current; one that cannot be made again, or is not wanted (``plain``), goes.

    A folder that cannot be written is left as it is.
    """
    path = os.path.join(root, LIBRARY)
    if not plain and is_current(root):
        return
    library = None if plain else built_library(root)
    try:
        if library is not None:
            write(path, library)
        elif os.path.exists(path):
            os.unlink(path)
    except OSError as error:
        print(f"{error.filename}: {error.strerror}", file=sys.stderr)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="cli.install_commands", description="Write lava's commands into a folder.")
    parser.add_argument("folder", metavar="BINDIR")
    parser.add_argument("--python", default=sys.executable, help="the interpreter (default: this one)")
    parser.add_argument("--root", default=os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    parser.add_argument("--plain", action="store_true", help="Python for all commands and jobs, also where a C compiler is")
    given = parser.parse_args(argv)
    prefix = os.path.dirname(os.path.abspath(given.folder))
    alone, plain = os.path.join(prefix, ALONE), os.path.join(prefix, PLAIN)
    native = None if given.plain else built()
    try:
        for folder in (given.folder, alone):
            install(folder, os.path.abspath(given.python), os.path.abspath(given.root), native, plain)
            manpages.write(os.path.join(os.path.dirname(folder), manpages.SECTION))
        compile_modules(os.path.abspath(given.root))
    except OSError as error:
        print(f"{error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    make_library(os.path.abspath(given.root), given.plain)
    kind = "in Python" if native is None else f"{len(NATIVE)} of them native"
    print(f"{len(INSTALLED)} commands in {given.folder}, and alone in {alone}; {kind}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
