"""Job files (-json, -yaml) and pack files: what they give, and what they may not."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.client.context import Context, Fail
from cli.submit.job_file import pack_lines, read_job_file
from cli.submit.submit_options import bsub_table


def read(folder: Path, kind: str, text: str) -> tuple[dict[str, object], str]:
    (folder / "job").write_text(text, encoding="utf-8")
    options: dict[str, str | bool | list[str]] = {kind: "job"}
    found, command = read_job_file(Context([], str(folder)), options, bsub_table())
    assert not options
    return dict(found), command


def test_json(tmp_path: Path) -> None:
    text = '{"io": {"o": "out", "e": "err"}, "limit": {"W": 10}, "r": true, "H": false, "R": ["a", "b"], "command": "sleep 1"}'
    found, command = read(tmp_path, "json", text)
    assert found == {"o": "out", "e": "err", "W": "10", "r": True, "R": ["a", "b"]}
    assert command == "sleep 1"


def test_yaml(tmp_path: Path) -> None:
    text = "---\nio:\n  o: out  # a file\n  e: 'err'\nlimit:\n  W: 10\nR:\n  - a\n  - \"b\"\nr: yes\ncommand: sleep 1\n"
    found, command = read(tmp_path, "yaml", text)
    assert found == {"o": "out", "e": "err", "W": "10", "r": True, "R": ["a", "b"]}
    assert command == "sleep 1"


@pytest.mark.parametrize(
    ("kind", "text"), [("json", '{"resource": {"gpu": "num=2:gmem=1G"}}'), ("yaml", 'gpu: "num=2:gmem=1G"\n')]
)
def test_gpus(tmp_path: Path, kind: str, text: str) -> None:
    assert read(tmp_path, kind, text)[0] == {"gpu": "num=2:gmem=1G"}


IBM = """io:
    inputFile: /tmp/input
    outputDir: /tmp/output
limit:
    coreLimit: 5
    cpuTimeLimit: 1:30
resource:
    hostFile: /tmp/hosts
properties:
    queueName: normal
    rerun: null
schedule:
    hold: ""
    userGroup: mine
notify:
    notifyJobDone: ""
    notifyJobExit:
    mailUser: user@example.com
command: |
    echo a
    echo b
"""


def test_ibms_names_and_their_flags_without_a_value(tmp_path: Path) -> None:
    found, command = read(tmp_path, "yaml", IBM)
    assert found == {
        "i": "/tmp/input",
        "outdir": "/tmp/output",
        "C": "5",
        "c": "1:30",
        "hostfile": "/tmp/hosts",
        "q": "normal",
        "r": True,
        "H": True,
        "G": "mine",
        "N": True,
        "Ne": True,
        "u": "user@example.com",
    }
    assert command == "echo a\necho b\n"


BAD = ["[1]", "{", '{"nosuch": 1}', "[" * 100_000, '{"n": [1, 2]}', '{"n": true}', '{"r": "x"}', '{"command": ["a"]}']


@pytest.mark.parametrize("text", BAD)
def test_bad_json(tmp_path: Path, text: str) -> None:
    with pytest.raises(Fail):
        read(tmp_path, "json", text)


def test_pack(tmp_path: Path) -> None:
    (tmp_path / "pack").write_text("# four jobs\n-J one sleep 1\nbsub -q night 'echo a b'\n\n-n 2 true\n-J I grep -I -K x\n-n\n")
    context = Context([], str(tmp_path))
    assert pack_lines(context, "pack", bsub_table()) == [
        (2, ["-J", "one", "sleep", "1"]),
        (3, ["-q", "night", "echo a b"]),
        (5, ["-n", "2", "true"]),
        (6, ["-J", "I", "grep", "-I", "-K", "x"]),
        (7, ["-n"]),
    ]
    with pytest.raises(Fail, match="nosuch: No such file or directory"):
        pack_lines(context, "nosuch", bsub_table())


@pytest.mark.parametrize("line", ["-I cat", "bsub -q night -Is bash", "-n 2 -K true", "-pack other", "-Ip top"])
def test_a_pack_has_no_interactive_jobs(tmp_path: Path, line: str) -> None:
    (tmp_path / "pack").write_text(f"true\n{line}\n")
    with pytest.raises(Fail, match="pack: line 2: -pack, -I, -Ip, -Is and -K cannot be used"):
        pack_lines(Context([], str(tmp_path)), "pack", bsub_table())


@given(st.text(max_size=200))
def test_any_text_is_taken_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    folder = tmp_path_factory.mktemp("job")
    for kind in ("json", "yaml"):
        try:
            (folder / "job").write_bytes(text.encode("utf-8", "surrogatepass"))
            read_job_file(Context([], str(folder)), {kind: "job"}, bsub_table())
        except Fail:
            pass
