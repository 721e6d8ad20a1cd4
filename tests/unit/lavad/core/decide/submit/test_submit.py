"""bsub: every option's good and bad values with LSF's words."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from lavad.core.decide.submit.options import SENT_WITH_TEXT
from lavad.core.decide.submit.readers import READERS
from lavad.core.decide.submit.submit import Given, submit
from lavad.core.decide.submit.work import check_work
from lavad.core.lang.asks import Caller, OptionValue, Refused, Submit
from lavad.core.site.conf import Params
from proto.options import FLAG, OPTIONS
from tests.support.worlds.bench import ALICE, LOCAL, ROOT, Bench

NO_HOST = "Bad host name, host group name or cluster name"
Field = Callable[[Any], Any]
"""Of a ``Spec``; a part that may be None is there where it is asked for."""


def text_of(bench: Bench, **options: OptionValue) -> Any:
    ask = Submit(command="c", options={name.rstrip("_"): value for name, value in options.items()})
    return submit(bench.cluster, Given(ask, ALICE, bench.now, LOCAL)).texts[0][1]


GOOD: list[tuple[str, OptionValue, Field, Any]] = [
    ("n", "4", lambda s: (s.slots, s.max_slots), (4, 4)),
    ("n", "2,8", lambda s: (s.slots, s.max_slots), (2, 8)),
    ("n", " 2 , 8 ", lambda s: (s.slots, s.max_slots), (2, 8)),
    ("n", "2147483647", lambda s: s.slots, 2**31 - 1),
    ("W", "10", lambda s: s.limits.run, 600),
    ("Q", "42 EXCLUDE(3)", lambda s: s.requeue, "42 EXCLUDE(3)"),
    ("nnodes", "3", lambda s: (s.slots, s.resreq), (3, "span[ptile=1]")),
    ("We", "10", lambda s: s.limits.run, None),
    ("W", "1:30", lambda s: s.limits.run, 5400),
    ("W", "10/h1", lambda s: (s.limits.run, s.run_host), (600, "h1")),
    ("c", "10", lambda s: s.limits.cpu, 600),
    ("c", "0:10/h2", lambda s: (s.limits.cpu, s.cpu_host), (600, "h2")),
    *[
        (option, "2000", lambda s, f=field: getattr(s.limits, f), 2000)
        for option, field in (("M", "mem"), ("v", "swap"), ("D", "data"), ("F", "file"), ("S", "stack"), ("C", "core"))
    ],
    ("M", "2G", lambda s: s.limits.mem, 2 * 1024**2),
    ("M", "2GB", lambda s: s.limits.mem, 2 * 1024**2),
    ("M", "512m", lambda s: s.limits.mem, 512 * 1024),
    ("M", "512M!", lambda s: s.limits.mem, 512 * 1024),
    ("M", "1.5G", lambda s: s.limits.mem, 1536 * 1024),
    ("M", "0.5G!", lambda s: s.limits.mem, 512 * 1024),
    ("M", "4000.0", lambda s: s.limits.mem, 4000),
    ("C", "0.2K", lambda s: s.limits.core, 1),
    ("M", "0", lambda s: s.limits.mem, None),
    ("C", "0", lambda s: s.limits.core, 0),
    ("p", "12", lambda s: s.limits.processes, 12),
    ("T", "12", lambda s: s.limits.threads, 12),
    ("hostfile", ["f", "h1 2", "h2 1", "h1 1"], lambda s: (s.slots, s.max_slots), (4, 4)),
    ("ul", "core=0 stack=8192", lambda s: (s.limits.core, s.limits.stack, s.limits.cpu), (0, 8192, None)),
    ("m", "h1", lambda s: s.hosts, ("h1",)),
    ("m", "h1+2 h2! others", lambda s: s.hosts, ("h1+2", "h2!", "others")),
    ("m", "all", lambda s: s.hosts, ("all",)),
    ("R", "2*{select[mem>5]}+3*{rusage[mem=7]}", lambda s: (s.slots, s.max_slots), (5, 5)),
    ("R", "{2*{select[mem>5]}+{rusage[mem=7]}} || {select[ut<1]}", lambda s: (s.slots, s.max_slots), (3, 3)),
    ("R", "rusage[mem=100]", lambda s: "mem=" in s.resreq, True),
    ("R", ["select[mem>5]", "rusage[mem=1]"], lambda s: "select" in s.resreq and "rusage" in s.resreq, True),
    ("P", "proj", lambda s: s.project, "proj"),
    *[("P", blank, lambda s: s.project, "default") for blank in ("", "  ")],
    ("G", "anygroup", lambda s: s.user_group, "anygroup"),
    ("r", True, lambda s: s.rerunnable, True),
    ("rn", True, lambda s: s.rerunnable, False),
    ("k", "/ckpt", lambda s: (s.checkpoint.folder, s.checkpoint.period, s.checkpoint.method), ("/ckpt", 0, "")),
    (
        "k",
        "/ckpt 10 method=app init=5",
        lambda s: (s.checkpoint.period, s.checkpoint.method, s.checkpoint.initial),
        (600, "app", 300),
    ),
    ("k", "/ckpt auto init=5", lambda s: (s.checkpoint.auto, s.checkpoint.period, s.checkpoint.initial), (True, 0, 300)),
    ("gpu", "num=2", lambda s: s.gpu.num, 2),
    ("gpu", "-", lambda s: s.gpu is not None, True),
    ("b", "13:00", lambda s: s.begin, datetime(2026, 11, 20, 13).timestamp()),
    ("b", "11:00", lambda s: s.begin, datetime(2026, 11, 21, 11).timestamp()),
    ("t", "25:13:00", lambda s: s.deadline, datetime(2026, 11, 25, 13).timestamp()),
    ("t", "12:24:13:00", lambda s: s.deadline, datetime(2026, 12, 24, 13).timestamp()),
    ("a", "mpi", lambda s: s.launch, "mpi"),
    ("wa", "URG", lambda s: s.slots, 1),
    ("wt", "1:30", lambda s: s.slots, 1),
    ("ar", True, lambda s: (s.resizable, s.autoresize), (True, True)),
    ("rnc", "/bin/told", lambda s: s.resize_command, "/bin/told"),
]


@pytest.mark.parametrize(("option", "value", "field", "wanted"), GOOD, ids=[f"-{o} {v}" for o, v, _, _ in GOOD])
def test_a_good_value(bench: Bench, option: str, value: OptionValue, field: Field, wanted: object) -> None:
    assert field(bench.spec_of(**{option: value})) == wanted


POSITIVE = "The number of processors must be a positive integer"
BAD: list[tuple[str, OptionValue, str]] = [
    *[("n", value, POSITIVE) for value in ("0", "-1", "x", "", "1.5", "2147483648", "1,0", "1,x", "²", "1e3", "0x2")],
    ("n", "8,2", "8,2: The maximum number of processors is less than the minimum"),
    *[("W", value, f"{value}: Bad RUNLIMIT specification") for value in ("abc", "-5", "1:2:3", "", "99999999999")],
    ("W", "10/nosuch", "nosuch: Bad host specification"),
    ("c", "wd", "wd: Bad CPULIMIT specification"),
    ("c", "1/nosuch", "nosuch: Bad host specification"),
    *[
        (option, "x", f"x: Bad {name} specification")
        for option, name in (
            ("M", "MEMLIMIT"),
            ("v", "SWAPLIMIT"),
            ("D", "DATALIMIT"),
            ("F", "FILELIMIT"),
            ("S", "STACKLIMIT"),
            ("C", "CORELIMIT"),
        )
    ],
    *[
        ("M", value, f"{value}: Bad MEMLIMIT specification")
        for value in ("-1", "", "2Q", "1 G", "1GG", "9" * 16, "1.", ".5", "1.5.5")
    ],
    *[("p", value, f"{value}: Bad PROCESSLIMIT specification") for value in ("0", "x", "-1", "2147483648")],
    *[("T", value, f"{value}: Bad THREADLIMIT specification") for value in ("0", "x", "-1", "2147483648", "")],
    *[("f", value, "Bad file copy specification") for value in ("", "a", "a ! b", "> b", "a > b c", "a>b")],
    *[("notify", value, "Bad notification specification") for value in ("", "x", "exit x")],
    *[(option, value, "Bad pending time limit specification") for option in ("ptl", "eptl") for value in ("", "x", "-1", "0")],
    ("is", "in", "option -is is not supported by lava here"),
    ("hostfile", ["f", "nosuch 1"], f"nosuch: {NO_HOST}"),
    ("hostfile", ["f", "h1 x"], "The number of processors must be a positive integer"),
    ("hostfile", "f", "option -hostfile is not supported by lava here"),
    ("P", "x" * 65537, "-P: The value is too long"),
    *[("wa", value, "Bad warning action") for value in ("", "NOSUCH", "65", "0", "-9", "a\nb", "bin/x")],
    *[("wt", value, f"{value}: Bad warning time specification") for value in ("", "0", "x", "-1", "5/h1", "1:2:3")],
    *[
        ("rnc", value, "The resize notification command must be an absolute path")
        for value in ("", "told", "/" + "a" * 4096, "/a\nb")
    ],
    ("m", "nosuch", f"nosuch: {NO_HOST}"),
    ("m", "h1 nosuch+2", f"nosuch: {NO_HOST}"),
    *[("m", value, f"{value}: {NO_HOST}") for value in ("h1+x", "h1+-2", "h1+2+3", "h1!!", "h1!+2", "h1+٢")],
    ("m", "", NO_HOST),
    ("m", "  ", NO_HOST),
    ("R", "+".join(["1*{}"] * 65), "Bad resource requirement: more than 32 alternatives, or 64 parts in all"),
    ("R", " || ".join(["{rusage[mem=1]}"] * 33), "Bad resource requirement: more than 32 alternatives, or 64 parts in all"),
    ("R", "cu[type=rack]", "Bad resource requirement: cu[]: no compute units of type <rack> are configured"),
    ("R", "span[gtile='!']", "Bad resource requirement: span[gtile] is not supported by lava"),
    (
        "R",
        "rusage[mem=(400 200):duration=(10 5)]",
        "Bad resource requirement: rusage[mem=(400 200)], a reservation in phases, is not supported by lava",
    ),
    ("R", "rusage[swp=20:threshold=5]", "Bad resource requirement: rusage[threshold] is not supported by lava"),
    (
        "R",
        "rusage[ngpus_physical=1:gmodel=K80]",
        "Bad resource requirement: rusage[gmodel] (bsub -gpu has gmodel=) is not supported by lava",
    ),
    ("R", "order[slots*maxslots]", "Bad resource requirement: order[slots*maxslots], arithmetic, is not supported by lava"),
    ("R", "2*{cu[excl]}", "Bad resource requirement: cu[excl] in a part of a requirement is not supported by lava"),
    *[
        ("R", value, "Bad resource requirement syntax")
        for value in ("select[", "nosuch[x]", "select[nosuch>1]", "rusage[mem=]", "span[hosts=x]")
    ],
    ("sp", "5", "Bad user priority"),
    ("sp", "0", "Bad user priority"),
    ("sp", "x", "Bad user priority"),
    ("k", "", "Checkpoint directory is missing"),
    ("k", "/c x", "x: Bad checkpoint period"),
    ("k", "/c 0", "0: Bad checkpoint period"),
    ("k", "/c 10 20", "20: Bad checkpoint period: 10 is given, too"),
    ("k", "/c 5 init=-1", "-1: Bad checkpoint period"),
    ("k", "/c method=a/b", "a/b: Bad checkpoint method"),
    ("k", "/c method=../a", "../a: Bad checkpoint method"),
    ("k", "/c method=", "Checkpoint method is missing"),
    ("k", "/c method=a method=b", "b: Bad checkpoint method: a is given, too"),
    (
        "k",
        "/c method=dmtcp",
        "dmtcp: this checkpoint method is not supported by lava: lava starts no program under dmtcp_launch",
    ),
    ("k", "/c keep=0", "0: Bad number of checkpoints to keep"),
    ("k", "/c keep=x", "x: Bad number of checkpoints to keep"),
    ("k", "/c 10 auto", "10: Bad checkpoint period: auto is given, too"),
    *[
        (option, value, f"{value}: Bad time specification")
        for option in ("b", "t")
        for value in ("99:99", "x", "24:00", "13:1:10:00", "1:2:3:4:5:6", "", "32:10:00")
    ],
    ("a", "nosuch", "nosuch: no such esub"),
    *[(option, "", ": Bad file name") for option in ("o", "oo", "e", "eo", "i", "outdir")],
    ("o", "a\0b", "Bad file name"),
    ("o", "a" * 4096, "Bad file name"),
    ("J", "a[5-1]", "Bad job name"),
    ("J", "a[", "Bad job name"),
    ("J", "a[1]b", "Bad job name"),
    ("J", "a[0]", "Bad job name"),
    ("J", "a[1-2]%0", "Bad job name"),
    ("J", "x" * 4095, "Bad job name"),
    ("J", "a\nb", "Bad job name"),
    ("P", "a\nb", "-P 'a\\nb': only characters that can be printed"),
    ("u", "a\nBcc: b", "-u 'a\\nBcc: b': only characters that can be printed"),
    ("G", "\x1b[31m", "only characters that can be printed"),
    ("J", "a[1-1001]", "Job array index too large"),
    ("J", "a[1-2000000000]", "Job array index too large"),
    ("q", "nosuch", "nosuch: No such queue"),
    ("q", "nosuch other", "other: No such queue"),
    ("x", True, "normal: Queue does not accept EXCLUSIVE jobs"),
    ("gpu", "num=x", "GPU|gpu"),
    ("zz", "1", "option -zz is not supported by lava"),
    ("n", True, "option requires an argument"),
    ("W", True, "option requires an argument"),
    ("q", True, "option requires an argument"),
]


@pytest.mark.parametrize(("option", "value", "text"), BAD, ids=[f"-{o} {str(v)[:20]!r}" for o, v, _ in BAD])
def test_a_bad_value(bench: Bench, option: str, value: Any, text: str) -> None:
    before = (bench.cluster.version, bench.cluster.next_job)
    with pytest.raises(Refused, match=text if "|" in text else None) as raised:
        bench.bsub(**{option: value})
    assert "|" in text or text in raised.value.text
    assert "\n" not in raised.value.text
    assert (bench.cluster.version, bench.cluster.next_job) == before


def test_every_option_has_a_good_value_somewhere() -> None:
    """An option without a test of what it does is not one."""
    tested = {option for option, _, _, _ in GOOD} | {"J", "q", "H", "sp", "x", "K", "env"} | {"alloc_flags", *TEXTS}
    elsewhere = {
        "w",
        "g",
        "ext",
        "app",
        "ti",
        "I",
        "Ip",
        "Is",
        "f",
        "is",
        "L",
        "U",
        "tty",
        "We+",
        "Wep",
        "hl",
        "mig",
        "sla",
    }
    assert set(READERS) - tested <= elsewhere


TEXTS: dict[str, tuple[OptionValue, dict[str, object]]] = {
    "o": ("out.%J", {"output": "out.%J", "output_overwrite": False}),
    "oo": ("out", {"output": "out", "output_overwrite": True}),
    "e": ("err", {"error": "err", "error_overwrite": False}),
    "eo": ("err", {"error": "err", "error_overwrite": True}),
    "i": ("in", {"input": "in"}),
    "outdir": ("/o", {"output_dir": "/o"}),
    "cwd": ("/w", {"cwd": "/w", "cwd_given": True}),
    "L": ("/bin/bash", {"login_shell": "/bin/bash"}),
    "E": ("pre x", {"pre_exec": "pre x"}),
    "Ep": ("post x", {"post_exec": "post x"}),
    "Jd": ("about", {"description": "about"}),
    "u": ("a@b", {"mail_user": "a@b"}),
    "secret": ("A=/a B=/b", {"secrets": (("A", "/a"), ("B", "/b"))}),
    "B": (True, {"notify_start": True}),
    "N": (True, {"notify_end": True}),
    "label": (True, {"label": True}),
    "rankfiles": ("r.%R", {"rank_files": "r.%R"}),
    "Ip": (True, {"interactive": "Ip"}),
    "is": (["in", "aGk="], {"input": "in", "input_data": "aGk="}),
    "f": (["a >  b", "c <<"], {"copies": ("a > b", "c <<")}),
    "hostfile": (["f", "h1 2", "h2 1", "h1 1"], {"host_file": "f"}),
    "Ne": (True, {"notify": "exit"}),
    "Nd": (True, {"notify": "done"}),
    "Ns": (True, {"notify": "start"}),
    "notify": ("start exit", {"notify": "start exit"}),
    "ptl": ("1:30", {"pend_limit": 90}),
    "eptl": ("30", {"eligible_limit": 30}),
}


@pytest.mark.parametrize(
    "option", sorted(row.name for row in OPTIONS if row.takes == FLAG and row.name in READERS and row.name not in SENT_WITH_TEXT)
)
@pytest.mark.parametrize("value", ["0", "true", "", False, ["n"]], ids=repr)
def test_a_flag_is_set_or_left_out(bench: Bench, option: str, value: Any) -> None:
    """A program that sends 0 or "no" does not get a job with it."""
    with pytest.raises(Refused, match=f"-{option}: the option takes no argument"):
        bench.bsub(**{option: value})


@pytest.mark.parametrize("option", TEXTS)
def test_an_option_about_text(bench: Bench, option: str) -> None:
    value, wanted = TEXTS[option]
    text = text_of(bench, **{option: value})
    assert {name: getattr(text, name) for name in wanted} == wanted


@pytest.mark.parametrize(("given", "folder"), [(".", "/s"), ("./a/", "/s/a"), ("a/../b", "/s/a/../b"), ("%J", "/s/%J")])
def test_a_relative_folder_is_below_that_of_submission(bench: Bench, given: str, folder: str) -> None:
    ask = Submit(command="c", cwd="/s", options={"cwd": given})
    assert submit(bench.cluster, Given(ask, ALICE, bench.now, LOCAL)).texts[0][1].cwd == folder


@pytest.mark.parametrize("first", ["mpirun", "/usr/bin/mpiexec", "srun", "prun"])
def test_two_launchers_are_one_too_many(bench: Bench, first: str) -> None:
    with pytest.raises(Refused, match="-a mpi starts every rank itself"):
        bench.bsub(command=f"{first} ./a", a="mpi")


@pytest.mark.parametrize("command", ["", "   ", "\n"])
def test_no_command(bench: Bench, command: str) -> None:
    with pytest.raises(Refused, match="No command is specified"):
        bench.bsub(command=command)


@pytest.mark.parametrize(("command", "text"), [("x" * (2**20 + 1), "too long"), ("a\0b", "Bad command")])
def test_a_command_that_cannot_be(bench: Bench, command: str, text: str) -> None:
    with pytest.raises(Refused, match=text):
        bench.bsub(command=command)


def test_root_is_refused_unless_the_site_lets_it(bench: Bench) -> None:
    with pytest.raises(Refused, match="User permission denied"):
        bench.bsub(ROOT)
    with pytest.raises(Refused, match="User permission denied"):
        bench.bsub(Caller(user="root", uid=1000, host="h1"))  # as an agent may vouch that lies
    bench.configure(params=Params(lsf_root_user=True))
    assert bench.bsub(ROOT)["job"] == 1


def test_a_script_over_the_sites_limit_is_refused() -> None:
    """In bytes, not in characters; bmod as bsub."""
    params = Params(lava_max_script=1)
    check_work(params, "x", "a" * 2**20)
    for script in ("a" * (2**20 + 1), "\u20ac" * (2**20 // 3 + 1)):
        with pytest.raises(Refused, match=r"^The job script is larger than 1 MB \(LAVA_MAX_SCRIPT\)$"):
            check_work(params, "x", script)
    with pytest.raises(Refused, match="The command is too long"):
        check_work(params, "a" * (2**20 + 1), "")


@pytest.mark.parametrize(
    "requirement", ["span[hosts=1]", "1*{select[mem>1]}+1*{rusage[mem=1]}", "{select[mem>1]} || {select[mem>2]}"]
)
def test_nnodes_beside_another_placement_is_refused(bench: Bench, requirement: str) -> None:
    with pytest.raises(Refused, match=r"^-nnodes 2: (?!.*syntax)"):
        bench.bsub(nnodes="2", R=requirement)
