"""#if by time, #INCLUDE, and the forms in which sites write their files."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.model.problems import Problems
from config.read.load import load
from config.text.lines import Reading
from config.text.sections import read_sections
from lavad.configure.resolve import resolve

MONDAY_NOON = 1440 + 720
BY_TIME = """Begin Parameters
#if time(18:30-19:30)
A = evening
#elif time(1:10:00-1:14:00) && !time(13:00-14:00)
A = monday
#else
A = else
#endif
B = 3   # if you like
# if this is a comment, so is the next line
#if you wish
End Parameters
"""


def value_of(text: str, minute: int, name: str = "A") -> tuple[str, list[str]]:
    problems = Problems()
    [section] = read_sections(text, "f", Reading(problems, minute=minute))
    return section.rows[0].cells[name].value, [f"{problem.line}: {problem.text}" for problem in problems.all()]


@pytest.mark.parametrize(
    ("minute", "expected"),
    [
        (1110, "evening"),
        (1169, "evening"),
        (1170, "else"),
        (MONDAY_NOON, "monday"),
        (1440 + 13 * 60, "else"),
        (1440 + 1110, "evening"),
        (2 * 1440 + 720, "else"),
    ],
)
def test_lines_hold_by_time(minute: int, expected: str) -> None:
    assert value_of(BY_TIME, minute) == (expected, [])
    assert value_of(BY_TIME, minute, "B") == ("3", [])


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("time(11:00-13:00)", True),
        ("TIME (11-13)", True),
        ("time(5:18:00-1:13:00)", True),
        ("time(20:00-8:00)", False),
        ("time(20:00-8:00 11:30-12:30)", True),
        ("time(1-2) || time(12-13)", True),
        ("!(time(1-2) || time(12-13))", False),
        ("time(mon:11:00-mon:13:00)", True),
        ("!time(1-2) && !time(2-3)", True),
    ],
)
def test_conditions(asked: str, expected: bool) -> None:
    found, problems = value_of(f"Begin P\nA = no\n#if {asked}\nB = 1\nA = yes\n#endif\nEnd P", MONDAY_NOON)
    assert found == ("yes" if expected else "no")
    assert [text for text in problems if "twice" not in text] == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("#if time(25:00-26:00)\n#endif", "1: #if: time window '25:00-26:00': '25:00' is not a time"),
        ("#if time(8:00-9:00) &&\n#endif", "1: #if: the condition ends too early"),
        ("#if (time(8-9)\n#endif", "1: #if: a '(' is not closed"),
        (f"#if {'(' * 101}time(8-9){')' * 101}\n#endif", "1: #if: more than 100 '(' in one condition"),
        (f"#if {'(' * 2000}time(8-9)\n#endif", "1: #if: more than 100 '(' in one condition"),
        ("#if time(8-9)\n", "1: #if has no #endif"),
        ("#else", "1: #else without #if"),
        ("#if time(8-9 EDT)\n#endif", "1: #if: time zone EDT has no effect: the time of the master's host is taken"),
    ],
)
def test_what_is_no_condition_is_said_with_its_line(text: str, said: str) -> None:
    problems = Problems()
    read_sections(text, "f", Reading(problems))
    assert [f"{problem.line}: {problem.text}" for problem in problems.all()] == [said]


def test_the_windows_of_conditions_are_known_so_that_the_files_are_read_again(tmp_path: Path) -> None:
    (tmp_path / "lsb.queues").write_text("Begin Queue\nQUEUE_NAME = q\n#if time(8:00-18:00)\nUJOB_LIMIT = 2\n#endif\nEnd Queue\n")
    noon, night = load(str(tmp_path), minute=MONDAY_NOON).config, load(str(tmp_path), minute=60).config
    assert (noon.queues[0].ujob_limit, night.queues[0].ujob_limit) == (2, None)
    assert resolve(night).params.time_windows == ("8:00-18:00",)


def test_a_file_is_read_in_the_place_of_its_include(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "limits").write_text("UJOB_LIMIT = 5\nIMPT_JOBBKLG = 2\nNICE = much\n")
    (tmp_path / "lsb.queues").write_text(
        'Begin Queue\nQUEUE_NAME = a\n#INCLUDE "shared/limits"\nPRIORITY = 7\nEnd Queue\n#include "more.queues"\n'
    )
    (tmp_path / "more.queues").write_text("Begin Queue\nQUEUE_NAME = b\nEnd Queue\n")
    loaded = load(str(tmp_path))
    assert [(queue.name, queue.ujob_limit, queue.priority) for queue in loaded.config.queues] == [("a", 5, 7), ("b", None, 1)]
    said = [(Path(problem.file).name, problem.line, problem.text) for problem in loaded.problems]
    assert ("limits", 3, "queue a: NICE: 'much' is not a whole number") in said
    assert [(file, line) for file, line, text in said if "IMPT_JOBBKLG" in text] == [("limits", 2)]


@pytest.mark.parametrize(
    ("line", "words"),
    [('#INCLUDE "lsb.queues"', "includes itself"), ('#INCLUDE "none"', "there is no file"), ('#INCLUDE ""', "in double")],
)
def test_what_cannot_be_included(line: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "lsb.queues").write_text(f"\n{line}\nBegin Queue\nQUEUE_NAME = a\nEnd Queue\n")
    [problem] = load(str(tmp_path)).problems
    assert (problem.line, problem.fatal, words in problem.text) == (2, True, True)


@pytest.mark.parametrize(("line", "said"), [("#INCLUDE /site/queues", 1), ("#INCLUDE our hosts", 0), ("#include queues", 0)])
def test_an_include_whose_quotes_were_forgotten_is_warned_of(line: str, said: int, tmp_path: Path) -> None:
    """The file was passed over without a word."""
    (tmp_path / "lsb.queues").write_text(f"{line}\nBegin Queue\nQUEUE_NAME = a\nEnd Queue\n")
    problems = load(str(tmp_path)).problems
    assert [(one.line, one.fatal, one.text.partition(":")[0]) for one in problems] == [(1, False, "#INCLUDE")] * said


WILD = (
    "\ufeff# a file from the wild\r\n"
    "BEGIN queue   # upper and lower\r\n"
    "queue_name\t=\tnormal\t\r\n"
    "Priority=30\r\n"
    '  description = "For normal jobs # not a comment"  # a comment\r\n'
    "USERS =   ann   bob \\\r\n"
    "          eve\r\n"
    "\r\n"
    "res_req = select[type==any && \\\r\n"
    "   mem>100] order[r1m:pg]\r\n"
    "#NICE = 20\r\n"
    "UJOB_LIMIT = ()\r\n"
    "QJOB_LIMIT = -\r\n"
    "HOSTS = (hostA hostB)\r\n"
    "r1m=.7/2\r\n"
    "end QUEUE\r\n"
)


def test_a_file_as_sites_write_it(tmp_path: Path) -> None:
    (tmp_path / "lsb.queues").write_bytes(WILD.encode())
    loaded = load(str(tmp_path))
    assert loaded.problems == ()
    [queue] = loaded.config.queues
    assert (queue.name, queue.priority, queue.description) == ("normal", 30, "For normal jobs # not a comment")
    assert (queue.users, queue.hosts, queue.nice) == (("ann", "bob", "eve"), ("hostA", "hostB"), 0)
    assert (queue.ujob_limit, queue.qjob_limit) == (None, None)
    assert queue.res_req == "select[type==any && mem>100] order[r1m:pg]"
    assert (queue.thresholds.sched[0], queue.thresholds.stop[0]) == (("r1m", 0.7), ("r1m", 2.0))


INSTALLED = {
    "lsf.conf": 'LSF_MASTER_LIST="m1 m2"\nLSF_LIM_PORT=7869\nLSF_RSH="ssh -o \'BatchMode yes\'"\nLSF_UNIT_FOR_LIMITS=GB\n',
    "lsf.cluster.test": (
        "Begin Parameters\nPRODUCTS=LSF_Base LSF_Manager\nFLOAT_CLIENTS=10\nEnd Parameters\n"
        "Begin   Host\nHOSTNAME  model    type  server  RESOURCES    #Keywords\n#apple Sparc SUNSOL 1 (sparc bsd) #Example\n"
        "h1   !   !   1   (mg)\nh2   !   !   1   ()\nEnd     Host\n"
        "Begin ResourceMap\nRESOURCENAME  LOCATION\nlic (0@[h1] 4@[h2])\nEnd ResourceMap\n"
    ),
    "lsf.shared": (
        "Begin Resource\nRESOURCENAME  TYPE    INTERVAL INCREASING  DESCRIPTION   # Keywords\n"
        "mg  Boolean ()  ()  (Management hosts)\nlic Numeric ()  N   (Licences)\nEnd Resource\n"
    ),
    "lsb.params": (
        "Begin Parameters\nDEFAULT_QUEUE  = normal   #default job queue name\nENABLE_EVENT_STREAM = n #no stream\n"
        "MAX_CONCURRENT_QUERY = 100\nMAX_INFO_DIRS=500\nEnd Parameters\n"
    ),
    "lsb.queues": "Begin Queue\nQUEUE_NAME=normal\nDESCRIPTION  = Jobs that go\\\nbefore.\nHOSTS = all ~h2\nEnd Queue\n",
    "lsb.hosts": (
        "Begin Host\nHOST_NAME MXJ   r1m  tmp  DISPATCH_WINDOW  AFFINITY # Keywords\n"
        "default    !    ()  ()    ()  (Y)   # Example\nEnd Host\n"
        "Begin HostGroup\nGROUP_NAME    CONDENSE   GROUP_MEMBER     GROUP_ADMIN\n"
        "odd   N  (all ~h2)  ()\nboth  Y  (h[1-2])   ()\nEND HostGroup\n"
        "Begin HostPartition\nHPART_NAME = part1\nHOSTS      = h1 h2\nUSER_SHARES = [[ann, 3] [default, 1]]\nEnd HostPartition\n"
    ),
}


def test_the_files_of_an_installed_lsf_are_taken_as_they_are(tmp_path: Path) -> None:
    for name, text in INSTALLED.items():
        (tmp_path / name).write_text(text)
    loaded = load(str(tmp_path))
    assert [problem for problem in loaded.problems if not problem.note] == []
    config = loaded.config
    assert config.queues[0].description == "Jobs that go before."
    assert [group.members for group in config.host_groups] == [("all", "~h2"), ("h1", "h2")]
    assert config.partitions[0].shares == (("ann", 3), ("default", 1))
    assert config.resources[1].instances[1].value == "4"


def test_whom_to_preempt_that_lava_does_not_know(tmp_path: Path) -> None:
    (tmp_path / "lsb.params").write_text("Begin Parameters\nPREEMPT_FOR = MINI_JOB HOST_JLU\nEnd Parameters\n")
    [problem] = load(str(tmp_path)).problems
    assert (problem.fatal, problem.text) == (
        False,
        "section Parameters: PREEMPT_FOR: HOST_JLU is not supported by lava and has no effect",
    )
