"""The options of bsub, bmod and brestart: which there are, which are rivals, and what ``-env`` makes of an environment.

Rule: values stay raw; the master reads them.
"""

from __future__ import annotations

from cli.client.fail import Fail
from cli.options.options import Table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.options.options import Options

FLAGS = "B H I Ip Is IS ISp ISs IX K N Ne Ns Nd r rn x ul ar hl ti XF tty datachk Zs label"
VALUED = (
    "a alloc_flags app b C c clusters cn_cu cn_mem core_isolation csm cwd D data datagrp E Ep e eo env eptl ext"
    " extsched F f freq G g gpu hostfile i is J Jd jobaff json jsdl jsdl_strict jsm k L Lp ln_mem ln_slots M m mig n"
    " network nnodes notify o oo outdir P p pack ptl Q q R rankfiles rcacct rnc S s secret sla smt sp stage step_cgroup T t"
    " U u v W We Wep w wa wt yaml"
)
_X11 = "there is no X11 forwarding; with ssh -X the DISPLAY of your login reaches jobs on hosts that see it"
_CSM = "it is for IBM's Cluster Systems Manager"
_DATA = "there is no data manager"
_EXTERNAL = "there is no external scheduler"
_POWER = "it is for IBM Power hosts"
REASONS = {
    "IX": _X11,
    "XF": _X11,
    "alloc_flags": _CSM,
    "cn_cu": _CSM,
    "cn_mem": _CSM,
    "csm": _CSM,
    "jsm": _CSM,
    "ln_mem": _CSM,
    "ln_slots": _CSM,
    "step_cgroup": _CSM,
    "core_isolation": _POWER,
    "smt": _POWER,
    "clusters": "there is one cluster",
    "data": _DATA,
    "datachk": _DATA,
    "datagrp": _DATA,
    "stage": "there is no burst buffer",
    "ext": _EXTERNAL,
    "extsched": _EXTERNAL,
    "freq": "a host's CPU frequency is not set for a job",
    "s": "jobs are suspended when a run window closes",
    "jobaff": "hosts have no attributes; -R and -m choose hosts",
    "Lp": "there is no License Scheduler",
    "network": "it is for IBM's Parallel Environment",
    "rcacct": "no hosts are borrowed from elsewhere",
    "sla": "there are no service classes",
}
"""Options that lava has not, and why."""
OFF = {"csm": "n", "jsm": "n", "step_cgroup": "n", "core_isolation": "0"}
"""Values that ask for nothing beyond what is so anyway."""
ALIAS = {"IS": "I", "ISp": "Ip", "ISs": "Is"}
"""LSF tunnels these through ssh; lava's interactive jobs always speak over TLS or a socket of the host."""
REFUSED = " ".join(REASONS)
REPEATED = "R a f"
BSUB_ONLY = frozenset(
    (
        "I",
        "Ip",
        "Is",
        "IS",
        "ISp",
        "ISs",
        "IX",
        "XF",
        "tty",
        "K",
        "H",
        "Zs",
        "env",
        "json",
        "yaml",
        "pack",
        "jsdl",
        "jsdl_strict",
    )
)
"""What bmod does not know, as in LSF."""
BMOD_REASONS = {
    "uln": "limits are reset one by one (-Cn -cn -Dn -Fn -Sn)",
    "Zsn": "what was spooled before is not kept (bmod -Zs)",
    "Wepn": "an estimate is reset by -Wen",
}
RIVALS = (("r", "rn"), ("o", "oo"), ("e", "eo"), ("i", "is"))


def bsub_table(command: str = "bsub") -> Table:
    """What bsub and brestart take."""
    return Table(command, FLAGS, VALUED, "[command [argument ...]]", REFUSED, REPEATED, REASONS, OFF, ALIAS)


def bmod_table() -> Table:
    """bsub's options, and each of them with an ``n`` behind it, which resets it."""
    flags = [name for name in FLAGS.split() if name not in BSUB_ONLY]
    valued = [name for name in VALUED.split() if name not in BSUB_ONLY]
    resets = [name + "n" for name in (*flags, *valued) if name != "rn" and name + "n" not in valued]
    reasons = {**REASONS, **{name + "n": words for name, words in REASONS.items()}, **BMOD_REASONS}
    return Table(
        "bmod",
        f"{' '.join(flags)} {' '.join(resets)} Zsn",
        f"{' '.join(valued)} We+ Z Zs",
        "job_ID | job_ID[index_list]",
        " ".join(reasons),
        REPEATED,
        reasons,
        OFF,
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
