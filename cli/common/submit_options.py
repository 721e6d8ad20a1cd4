"""The options of bsub, bmod and brestart: which there are, which are rivals, and what ``-env`` makes of an environment.

Rule: values stay raw; the master reads them.
"""

from __future__ import annotations

from cli.common.fail import Fail
from cli.common.options import Table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.common.options import Options

FLAGS = "B H I Ip Is IS ISp ISs IX K N Ne Ns Nd r rn x ul ar hl ti XF tty datachk Zs label"
VALUED = (
    "a alloc_flags app b C c clusters cn_cu cn_mem core_isolation csm cwd D data datagrp E Ep e eo env eptl ext"
    " extsched F f freq G g gpu hostfile i is J Jd jobaff json jsdl jsdl_strict jsm k L Lp ln_mem ln_slots M m mig n"
    " network nnodes notify o oo outdir P p pack ptl Q q R rankfiles rcacct rnc S s secret sla smt sp stage step_cgroup T t"
    " U u v W We Wep w wa wt yaml"
)
REFUSED = (
    "IS ISp ISs IX XF alloc_flags clusters cn_cu cn_mem core_isolation csm data datachk datagrp ext"
    " extsched freq jobaff jsdl jsdl_strict jsm Lp ln_mem ln_slots network rcacct sla smt stage"
    " step_cgroup"
)
REPEATED = "R a f"
RIVALS = (("r", "rn"), ("o", "oo"), ("e", "eo"), ("i", "is"))


def bsub_table(command: str = "bsub") -> Table:
    """What bsub and brestart take."""
    return Table(command, FLAGS, VALUED, "[command [argument ...]]", REFUSED, REPEATED)


def bmod_table() -> Table:
    """bsub's options, and each of them with an ``n`` behind it, which resets it."""
    names = [name for name in f"{FLAGS} {VALUED}".split() if name not in ("K", "h", "V", "rn")]
    resets = [name + "n" for name in names if name + "n" not in VALUED.split()]
    refused = f"{REFUSED} I Ip Is tty hostfile is ul"
    return Table(
        "bmod",
        f"{' '.join(name for name in FLAGS.split() if name != 'Zs')} {' '.join(resets)}",
        f"{VALUED} Z Zs",
        "job_ID | job_ID[index_list]",
        f"{refused} K Zs {' '.join(name + 'n' for name in refused.split() if name != 'is')}",
        REPEATED,
    )


def last_rival(options: Options) -> Options:
    """Of options that exclude each other the one given last."""
    for pair in RIVALS:
        given = [name for name in options if name in pair]
        for name in given[:-1]:
            del options[name]
    return options


def merged(below: Options, above: Options) -> Options:
    """``above`` (the command line) wins over ``below`` (the script), a repeated option as a whole."""
    both = {name: value for name, value in below.items() if name not in above}
    both.update(above)
    return last_rival(both)


def propagated(environ: dict[str, str], wish: str | None) -> dict[str, str]:
    """The environment that a job gets: ``-env``'s ``none``, ``all, ~A, B=1`` or ``A, B=1``; without it all."""
    if wish is None:
        return dict(environ)
    items = _split_items(wish)
    kept: dict[str, str] = {}
    for place, item in enumerate(items):
        name, equals, value = item.partition("=")
        name = name.strip()
        if name in ("all", "none") and not equals and place == 0:
            kept = dict(environ) if name == "all" else {}
        elif name.startswith("~") and not equals:
            kept.pop(name[1:].strip(), None)
        elif not name or any(char in "~\"', " for char in name) or name in ("all", "none"):
            raise Fail(f"{item}: Bad -env specification")
        elif equals:
            kept[name] = _unquoted(value.strip())
        elif name in environ:
            kept[name] = environ[name]
    return kept


def _split_items(text: str) -> list[str]:
    items = [""]
    quote = ""
    for char in text:
        if char == "," and not quote:
            items.append("")
            continue
        if char == quote:
            quote = ""
        elif char in "'\"" and not quote and items[-1].endswith("="):
            quote = char
        items[-1] += char
    if quote:
        raise Fail(f"{text}: Bad -env specification")
    return [item.strip() for item in items if item.strip()]


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] in "'\"" and value[-1] == value[0] else value
