"""A command's words as the one shell command that LSF makes of them.

Rule (LSF's): the first word as it is, for it may be a whole shell command; a later word is quoted where it holds
blanks or begins with ``$``, and parentheses, quotes and backslashes are escaped. Other signs (``;`` ``>`` ``*``) stay
the shell's.
"""

ESCAPED = "()'\"\\"


def command_line(words: list[str]) -> str:
    """The words joined."""
    return " ".join([word if place == 0 else _quoted(word) for place, word in enumerate(words)])


def _quoted(word: str) -> str:
    blank = not word or any(char in " \t\n" for char in word)
    if word.startswith("$") or (blank and ('"' in word or "$" in word)):
        return single_quoted(word)
    if blank:
        return '"' + word.replace("\\", "\\\\").replace("`", "\\`") + '"'
    return "".join(["\\" + char if char in ESCAPED else char for char in word])


def single_quoted(word: str) -> str:
    """A word that no shell changes."""
    return "'" + word.replace("'", "'\\''") + "'"
