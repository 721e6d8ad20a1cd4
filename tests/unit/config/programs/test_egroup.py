"""Groups whose members the site's own program says: a real program, asked by the reader of the files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from config.programs import egroup
from config.programs.egroup import Egroup
from config.read.load import load

USERS = "Begin UserGroup\nGROUP_NAME GROUP_MEMBER\neng (!)\nall_eng (eng dora)\nEnd UserGroup\n"
HOSTS = "Begin HostGroup\nGROUP_NAME GROUP_MEMBER\nbig !\nEnd HostGroup\n"
PROGRAM = """#!/bin/sh
echo "$@" >> CALLS
case "$1 $2" in
    "-u eng") echo "ann bob"; echo carl ;;
    "-m big") echo h1 h2 ;;
esac
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A configuration with a program, which writes down how it is called."""
    (tmp_path / "etc").mkdir(mode=0o755)
    (tmp_path / "lsf.conf").write_text(f"LSF_SERVERDIR={tmp_path}/etc\n")
    (tmp_path / "lsb.users").write_text(USERS)
    (tmp_path / "lsb.hosts").write_text(HOSTS)
    write(tmp_path, PROGRAM.replace("CALLS", str(tmp_path / "calls")))
    return tmp_path


def write(site: Path, text: str) -> None:
    (site / "etc" / "egroup").write_text(text)
    (site / "etc" / "egroup").chmod(0o755)


def test_the_members_are_those_that_the_program_says(site: Path) -> None:
    """One question a group, -u of users and -m of hosts, as LSF asks."""
    found = load(str(site), egroup_in=Egroup)
    assert (found.problems, found.unanswered) == ((), ())
    assert {group.name: group.members for group in found.config.user_groups} == {
        "eng": ("ann", "bob", "carl"),
        "all_eng": ("eng", "dora"),
    }
    assert [group.members for group in found.config.host_groups] == [("h1", "h2")]
    assert sorted((site / "calls").read_text().splitlines()) == ["-m big", "-u eng"]


def test_who_only_looks_at_the_files_does_not_run_it(site: Path) -> None:
    """Each agent and many commands do."""
    found = load(str(site))
    assert (found.problems, [group.members for group in found.config.host_groups]) == ((), [()])
    assert not (site / "calls").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("#!/bin/sh\nexit 3\n", "egroup -u eng ended with 3"),
        ("#!/bin/sh\necho 'ann b;b'\n", "egroup -u eng says 'b;b', which is no name"),
        ("#!/nowhere/sh\n", "No such file or directory"),
        ("#!/bin/sh\nsleep 1000 & echo ann; wait\n", "egroup -u eng takes longer than 0.2 s"),
        ("", "there is no program egroup in LSF_SERVERDIR"),
    ],
)
def test_one_that_does_not_answer_is_told_of(site: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str) -> None:
    """With file and line; the group is named to whoever must not take the configuration so."""
    monkeypatch.setattr(egroup, "LONGEST", 0.2)
    (site / "lsb.hosts").unlink()
    write(site, text)
    if not text:
        (site / "etc" / "egroup").unlink()
    found = load(str(site), egroup_in=Egroup)
    (problem,) = found.problems
    assert (os.path.basename(problem.file), problem.line, problem.fatal) == ("lsb.users", 3, False)
    assert problem.text == f"user group eng: members by egroup (!): {said}: it has none"
    assert found.unanswered == ("eng",)


def test_half_an_answer_is_none(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that goes on and on is ended before it fills the disk; of one that has ended no part is taken."""
    monkeypatch.setattr(egroup, "LARGEST", 1 << 20)
    (site / "lsb.hosts").unlink()
    for text in ("echo $$ > {0}/pid; exec yes ann", "yes ann | head -n 300000", "exec head -c 1048577 /dev/zero"):
        write(site, "#!/bin/sh\n" + text.format(site))
        found = load(str(site), egroup_in=Egroup)
        assert "egroup -u eng says more than 1 MiB: it has none" in found.problems[0].text
        assert (found.unanswered, found.config.user_groups[0].members) == (("eng",), ())
    with pytest.raises(ProcessLookupError):
        os.kill(int((site / "pid").read_text()), 0)


def test_one_that_hangs_is_not_asked_for_each_group(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(egroup, "LONGEST", 0.2)
    write(site, f"#!/bin/sh\necho $2 >> {site}/calls\nexec sleep 1000\n")
    found = load(str(site), egroup_in=Egroup)
    assert found.unanswered == ("big", "eng")
    assert (site / "calls").read_text() == "big\n"
    assert "egroup -u eng is not run, as egroup took longer than 0.2 s before" in found.problems[1].text


@pytest.mark.skipif(os.geteuid() != 0, reason="only root must be careful")
def test_root_runs_only_what_root_alone_may_write(site: Path) -> None:
    (site / "etc" / "egroup").chmod(0o775)
    found = load(str(site), egroup_in=Egroup)
    assert found.unanswered == ("big", "eng")
    assert "is not run as root, as others than root may write it" in found.problems[0].text
    assert not (site / "calls").exists()
