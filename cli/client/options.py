"""LSF's single-dash options: bsub's way (long names, a command after them) and getopt's way (letters may be glued).

Rule: an option is never read as another one. A name of several letters is only itself (``-gpu`` is not ``-g pu``); a
value may be glued to a letter (``-n4``, ``-Rspan[hosts=1]``) where the word could not be meant as a long name.
"""

from __future__ import annotations

from cli.client.context import LSF_FAILED, Context, Done, Fail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Options = dict[str, str | bool | list[str]]
    Read = Callable[["Table", list[str]], tuple[Options, list[str]]]


WHY_NOT = {
    "cname": "there is one cluster, so its hosts carry no cluster's name",
    "fwd": "there is no other cluster",
    "gl": "limits are those of one cluster",
    "bucket": "see lava why for what a job waits for",
    "attr": "hosts have no attributes",
    "loc": "hosts have no locations; bhosts -l and lshosts show what is known of them",
    "blimits o": "its columns are fixed",
    "bgmod u": "a job group is named by its path alone, whoever made it",
    **dict.fromkeys(("rc", "rconly", "rcalloc"), "it has no resource connector"),
}
"""Why an option that LSF has, of one command or of all, makes no sense here, where that is not plain from its name."""

HELP = ("h", "V", "help", "-help")
"""Options of every command, by which it does nothing else; ``--help`` among them."""


def why_not(command: str, name: str) -> str:
    """Why a command has not this option, "" where that is plain."""
    return WHY_NOT.get(f"{command} {name}") or WHY_NOT.get(name, "")


class Table:
    """The options that one command knows: ``flags`` without and ``valued`` with an argument, both as names in a text. ``dash``
    stands before them in the usage: ``--`` where they are words only.

    ``refused`` names known ones that lava has not, ``repeated`` those that gather in a list.
    """

    __slots__ = ("alias", "command", "dash", "off", "reasons", "refused", "repeated", "usage_words", "valued")

    def __init__(
        self,
        command: str,
        flags: str,
        valued: str,
        words: str = "",
        refused: str = "",
        repeated: str = "",
        dash: str = "-",
    ) -> None:
        self.command = command
        self.dash = dash
        self.valued = dict.fromkeys((*HELP, *flags.split()), False)
        self.valued.update(dict.fromkeys(valued.split(), True))
        self.refused = frozenset(refused.split())
        self.repeated = frozenset(repeated.split())
        self.reasons: dict[str, str] = {}
        self.off: dict[str, str] = {}
        self.alias: dict[str, str] = {}
        self.usage_words = words

    def knowing(self, reasons: dict[str, str], off: dict[str, str], alias: dict[str, str]) -> Table:
        """Itself, with why lava has not an option (name -> words), the value with which such a one asks for nothing and is
        taken (name -> value), and other names of options (name -> name).
        """
        self.reasons, self.off, self.alias = reasons, off, alias
        return self

    def is_option(self, word: str) -> bool:
        """Whether a word is the exact name of an option."""
        return word[:1] == "-" and word[1:] in self.valued

    def usage(self) -> str:
        """The synopsis, folded at 79 columns."""
        names = [name for name in self.valued if name not in self.refused and name not in HELP]
        pieces = [f"[{self.dash}{name} value]" if self.valued[name] else f"[{self.dash}{name}]" for name in names]
        pieces += ["[-h]", "[-V]"]
        if self.usage_words:
            pieces.append(self.usage_words)
        lines = [f"Usage: {self.command}"]
        indent = " " * (len(lines[0]) + 1)
        for piece in pieces:
            if len(lines[-1]) + 1 + len(piece) > 79:
                lines.append(indent + piece)
            else:
                lines[-1] += " " + piece
        return "\n".join(lines)

    def unsupported(self, name: str) -> Fail:
        """LSF has it, lava has not."""
        why = self.reasons.get(name) or why_not(self.command, name)
        return Fail(f"{self.command}: option -{name} is not supported by lava{': ' if why else ''}{why}")

    def keep(self, options: Options, name: str, value: str | bool) -> None:
        """Note an option: the last of several wins, but for the repeated ones."""
        name = self.alias.get(name, name)
        if name in self.refused:
            if value in self.off.get(name, "").split():
                return
            raise self.unsupported(name)
        if name in self.repeated and isinstance(value, str):
            known = options.get(name)
            options[name] = [*known, value] if isinstance(known, list) else [value]
        else:
            options.pop(name, None)
            options[name] = value


def table_of(command: str, subcommand: str = "", repeated: str = "") -> Table:
    """The options of a command as ``proto/commands.py`` has them; its messages name the subcommand too."""
    from proto.commands import COMMANDS, OF_LAVA  # bsub does without

    row = COMMANDS[command]
    name, dash = (f"lava {command}", "--") if command in OF_LAVA else (command, "-")
    return Table(f"{name} {subcommand}".rstrip(), row.flags, row.valued, row.words, row.refused, repeated, dash=dash)


def read_command_options(table: Table, words: list[str]) -> tuple[Options, list[str]]:
    """bsub's way: options up to the first word that is none -> (options, the command's words)."""
    options: Options = {}
    at = 0
    while at < len(words):
        word = words[at]
        if len(word) < 2 or word[0] != "-":
            break
        at += 1
        if word == "--":
            break
        name, glued = _split_long(table, word[1:])
        if not table.valued[name]:
            table.keep(options, name, True)
            continue
        if glued is None:
            if at == len(words) or table.is_option(words[at]):
                raise Fail(f"{table.command}: option requires an argument -- {name}")
            glued = words[at]
            at += 1
        table.keep(options, name, glued)
    return options, words[at:]


def _split_long(table: Table, text: str) -> tuple[str, str | None]:
    """A word without its dash -> the option's name and the value that is glued to it."""
    if text in table.valued:
        return text, None
    letter, rest = text[0], text[1:]
    for end in range(len(text) - 1, 1, -1):
        name = text[:end]
        if table.valued.get(name) and (text[end].isdigit() or text[end] == "/"):
            return name, text[end:]
    if table.valued.get(letter) and not _is_long_name(rest):
        return letter, rest
    raise Fail(f"{table.command}: illegal option -- {text}")


def _is_long_name(rest: str) -> bool:
    """Whether what follows the first letter makes the word look like an option of several letters."""
    head = rest.partition("=")[0]
    return head.replace("_", "").replace("-", "").isalpha()


def read_letters(table: Table, words: list[str]) -> tuple[Options, list[str]]:
    """getopt's way: options and words may mix, letters may be glued (``-aJ NAME``) -> (options, other words)."""
    options: Options = {}
    rest: list[str] = []
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word == "--":
            rest += words[at:]
            break
        if len(word) < 2 or word[0] != "-":
            rest.append(word)
            continue
        name, value = _take(table, options, word[1:])
        if name is None:
            continue
        if value is None and at < len(words) and not table.is_option(words[at]):
            value, at = words[at], at + 1
        if value is not None:
            table.keep(options, name, value)
        elif name == "o" and at < len(words):
            table.keep(options, "o", True)
        else:
            raise Fail(f"{table.command}: option requires an argument -- '{name}'\n{table.usage()}")
    if options.get("o") is True and table.valued.get("o"):
        options["o"] = _stray_format(table, rest)
    return options, rest


def _take(table: Table, options: Options, text: str) -> tuple[str | None, str | None]:
    """Note the flags of one word; the name (and glued value) of its option with an argument, if it has one."""
    if text in table.valued:
        if table.valued[text]:
            return text, None
        table.keep(options, text, True)
        return None, None
    if table.dash == "--" and len(text) > 1:
        raise Fail(f"{table.command}: unknown option -- {text}\n{table.usage()}")
    for at, letter in enumerate(text):
        valued = table.valued.get(letter)
        if valued is None or (valued and 0 < at < len(text) - 1):
            raise Fail(f"{table.command}: invalid option -- '{letter if valued is None else text}'\n{table.usage()}")
        if valued:
            return letter, text[at + 1 :] or None
        table.keep(options, letter, True)
    return None, None


def _stray_format(table: Table, rest: list[str]) -> str:
    for at, word in enumerate(rest):
        if not word[:1].isdigit():
            return rest.pop(at)
    raise Fail(f"{table.command}: option requires an argument -- 'o'\n{table.usage()}")


def read_argv(
    context: Context,
    table: Table,
    least: int = 0,
    most: int | None = None,
    *,
    argv: list[str] | None = None,
    read: Read = read_letters,
    status: int = LSF_FAILED,
) -> tuple[Options, list[str]]:
    """(options, other words) of the caller, or of ``argv``, which are ``least`` to ``most`` words (None: any number).

    Does what ``show_help`` does, and raises Fail with the usage for another number of words.
    """
    options, words = read(table, context.argv if argv is None else argv)
    show_help(context, table, options, status)
    if len(words) < least or (most is not None and len(words) > most):
        raise Fail(table.usage())
    return options, words


def show_help(context: Context, table: Table, options: Options, status: int = LSF_FAILED) -> None:
    """Do ``-h``, ``--help`` and ``-V``, and raise Done then.

    ``-h`` is LSF's: the usage on standard error, and mostly 255; ``--help`` says what each option does, on standard output.
    """
    if "-help" in options:
        from proto.help.lookup import shown

        context.out(shown(table.command) or table.usage() + "\n")
        raise Done(0)
    if "h" in options or "help" in options:
        context.err(table.usage() + "\n")
        raise Done(status)
    if "V" in options:
        show_version(context)
        raise Done(0)


def show_version(context: Context) -> None:
    """``-V``; a site may say what tools that look for LSF's own line are to read."""
    from cli.client.client import read_conf
    from proto.version import PRODUCT

    try:
        conf = read_conf(context)
    except Fail:
        conf = {}
    context.err((conf.get("LSF_COMPAT_VERSION") or PRODUCT) + "\n")
