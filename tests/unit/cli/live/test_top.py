"""lava top: what its page shows of what was asked, in the lines that a terminal has."""

from __future__ import annotations

from cli.live.listings import harmless, hms, megabytes, number
from cli.live.screen import Piece, bar, has_colours, painted, plain
from cli.live.top import Choice, Seen, page, pressed

HOST = {"STATUS": "ok", "MAX": "4", "NJOBS": "2", "NGPUS": "2", "NGPUS_ALLOC": "1", "TOTAL_MEM": "16G", "AVAILABLE_MEM": "12G"}
QUEUE = {"QUEUE_NAME": "normal", "PRIORITY": "30", "STATUS": "Open:Active", "NJOBS": "3", "PEND": "1", "RUN": "2", "SUSP": "0"}
JOB = {
    "JOBINDEX": "0",
    "STAT": "RUN",
    "USER": "ann",
    "QUEUE": "normal",
    "SLOTS": "2",
    "EXEC_HOST": "h1:h2",
    "PEND_REASON": "",
    "MEM": "",
}


def seen() -> Seen:
    hosts = [{**HOST, "HOST_NAME": "h1"}, {**HOST, "HOST_NAME": "h2", "STATUS": "unavail"}]
    slow = {**JOB, "JOBID": "1", "RUN_TIME": "60 second(s)", "CPU_USED": "5.0 second(s)", "MEM": "2 Gbytes", "JOB_NAME": "slow"}
    fast = {**JOB, "JOBID": "2", "JOBINDEX": "7", "RUN_TIME": "30 second(s)", "CPU_USED": "50.0 second(s)", "JOB_NAME": "fast"}
    return Seen("lava", hosts, {"h1": {"ut": "50%"}}, [QUEUE, {**QUEUE, "QUEUE_NAME": "night", "NJOBS": "0"}], [slow, fast])


def test_the_page_shows_hosts_queues_and_jobs_by_cpu_time() -> None:
    text = plain(page(seen(), Choice(), 40, 0.0))
    first = text.splitlines()[0]
    assert first.endswith("hosts 1 ok, 0 closed, 1 away   slots 4/8   GPUs 2/4   slots of jobs: 4 run, 2 wait, 0 suspended")
    assert "h1               ok           [######      ]   2/4      50%     4.0/16.0G   GPUs 1/2\n" in text
    assert "normal             30 Open:Active            3       1       2       0\n" in text
    assert "night" not in text
    assert [line.split()[0] for line in text.splitlines() if "ann" in line] == ["2[7]", "1"]
    assert "1              ann        normal     RUN       2  00:01:00   00:00:05    2048 MB h1 +1        slow\n" in text


def test_keys_choose_what_is_shown() -> None:
    choice = pressed(Choice(), "m")
    assert [line.split()[0] for line in plain(page(seen(), choice, 40, 0.0)).splitlines() if "ann" in line] == ["1", "2[7]"]
    assert pressed(choice, "p").waiting
    assert pressed(choice, "u").own
    assert pressed(choice, "x") == choice
    waits = seen()._replace(jobs=[{**JOB, "JOBID": "3", "PEND_REASON": "Not enough job slot(s);", "JOB_NAME": "n"}])
    assert "3              ann        normal     Not enough job slot(s)\n" in plain(page(waits, pressed(choice, "p"), 40, 0.0))


def test_a_small_terminal_gets_what_fits() -> None:
    many = seen()._replace(hosts=[{**HOST, "HOST_NAME": f"h{at}"} for at in range(50)])
    lines = page(many, Choice(), 20, 0.0)
    assert len(lines) <= 20
    assert any("more" in piece.text for line in lines for piece in line)
    assert painted([Piece("abc", "bad"), Piece("defg")], 5, True) == "\x1b[31mabc\x1b[0mde"
    assert painted([Piece("abc", "bad"), Piece("defg")], 5, False) == "abcde"


def test_fields_are_read_as_listings_write_them() -> None:
    assert [number(text) for text in ("12 Mbytes", "100%", "218 second(s)", "-", "", "1.5")] == [
        12.0,
        100.0,
        218.0,
        0.0,
        0.0,
        1.5,
    ]
    assert [megabytes(text) for text in ("24105M", "1.5 Gbytes", "1T", "")] == [24105.0, 1536.0, 1048576.0, 0.0]
    assert (hms(3723), bar(0.5, 4), bar(9.0, 2)) == ("01:02:03", "[##  ]", "[##]")
    assert harmless("a\x1b[31mb\x9bc") == "a?[31mb?c"


def test_no_colours_where_they_are_not_wanted() -> None:
    assert not has_colours({"TERM": "xterm", "NO_COLOR": "1"}, 1)
    assert not has_colours({"TERM": "dumb"}, 1)
