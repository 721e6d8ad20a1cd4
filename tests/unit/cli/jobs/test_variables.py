"""Variables of job files: values, defaults, what is refused by name and line, and shell text that is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.client.context import Context, Fail, finish
from cli.jobs import run
from cli.jobs.model import JobFile
from cli.jobs.run import jobs_of
from cli.jobs.variables import Variables
from cli.submit.yaml_text import read_yaml

pytest.importorskip("yaml")
FILE = """\
vars:
  workers: 2
  data:
name: train-${{ workers }}
env: {LR: "${{lr}}"}
roles:
  worker:
    count: ${{workers}}
    scratch: ${{keep}}
    command: |
      echo ${HOME} ${x:-{}} {} '{{.Names}}' "${#a}" $${{workers}} ${{
      python train.py ${{data}}
"""


def read(text: str, *settings: str) -> list[JobFile]:
    variables = Variables(settings)
    jobs = jobs_of(read_yaml("job.yaml", text, variables.of_file("job.yaml")), "job.yaml")
    variables.refuse_unknown(["job.yaml"])
    return jobs


def why(text: str, *settings: str) -> str:
    with pytest.raises(Fail) as failed:
        read(text, *settings)
    assert "\n" not in failed.value.text
    return failed.value.text


def test_values_are_put_in_and_shell_text_stays() -> None:
    (job,) = read(FILE, "data=/d", "lr=0.10", "keep=true", "workers=16")
    (role,) = job.roles
    assert (job.options, job.env) == ({"J": "train-16"}, {"LR": "0.10"})
    assert (role.count, role.scratch) == (16, True)
    said = "echo ${HOME} ${x:-{}} {} '{{.Names}}' \"${#a}\" ${{workers}} ${{\npython train.py /d\n"
    assert role.command == said


def test_a_value_is_one_value_whatever_is_in_it() -> None:
    """It makes no fields, closes no quotes of a list's words, and is not read for variables."""
    for value in ("a\nqueue: high", "'; rm -rf /", "${{b}}", "{x: 1}", "- 1", "&a", "#"):
        (job,) = read("command: [echo, '${{a}}']\nname: ${{a}}\nproject: p", f"a={value}")
        assert (job.options["J"], job.options["P"]) == (value, "p")
        assert "q" not in job.options


def test_json_numbers_and_flags_may_be_variables() -> None:
    text = '{"vars": {"n": 3}, "options": {"r": "${{r}}"}, "roles": {"w": {"count": "${{n}}", "command": ["a", "${{n}} b"]}}}'
    (job,) = read(text, "r=false")
    assert (job.options, job.roles[0].count, job.roles[0].command) == ({}, 3, "a '3 b'")
    assert read(text, "r=true")[0].options == {"r": True}


def test_defaults_hold_for_the_documents_behind() -> None:
    """A document of defaults alone is no job, and a manifest behind it stays one."""
    manifest = Path(__file__).parents[4] / "examples" / "roles" / "pytorchjob.yaml"
    text = manifest.read_text().replace("replicas: 1", "replicas: ${{masters}}")
    jobs = read(
        f"vars: {{n: 5, masters: 1}}\n---\ncommand: a ${{{{n}}}}\n---\n{text}\n---\nvars: {{n: 6}}\ncommand: b ${{{{n}}}}"
    )
    assert [job.command for job in jobs] == ["a 5", "", "b 6"]
    assert jobs[1].roles == jobs_of(read_yaml("m", manifest.read_text()), "m")[0].roles


def test_an_alias_is_filled_once() -> None:
    (job,) = read("command: x\nenv: {A: &a '${{n}}', B: *a}", "n=${{n}}")
    assert job.env == {"A": "${{n}}", "B": "${{n}}"}


BAD = [
    (FILE, ["lr=1", "keep=true"], "job.yaml: line 12: ${{data}}: no value: give --set data=VALUE, or a default under vars"),
    (FILE, ["data=1", "keep=true"], "job.yaml: line 5: ${{lr}}: no value"),
    (FILE, ["data=1", "lr=1", "keep=maybe"], "job.yaml.roles.worker.scratch: this is neither true nor false"),
    (FILE, ["data=1", "lr=1", "keep=true", "wrokers=3"], "--set wrokers: no variable of job.yaml"),
    ("command: >-\n  a\n  b ${{c d}}", [], "job.yaml: line 3: ${{c d}}: a variable's name is letters"),
    ("${{key}}: 1", [], "job.yaml: line 1: ${{key}}: no value"),
    ("vars: 3\ncommand: x", [], "job.yaml: line 1: vars: this is no mapping of variables"),
    ("vars: {a-b: 1}\ncommand: x", [], "job.yaml: line 1: vars: a variable's name"),
    ("vars:\n  a: '${{b}}'\ncommand: x", [], "job.yaml: line 2: vars: a: a default is a text or a number without variables"),
    ("vars: {a: 1}", [], "job.yaml: there is no job in it"),
    ("command: x", ["n"], "--set n: it is name=value"),
    ("command: x", ["1n=1"], "--set 1n=1: it is name=value"),
    ("command: x", ["n=1", "n=2"], "--set n: it is given twice"),
    ("command: " + "${{n}}" * 1000, ["n=" + "x" * 1000], "job.yaml: larger than 262144 characters"),
]


@pytest.mark.parametrize(("text", "settings", "said"), BAD, ids=range(len(BAD)))
def test_what_is_wrong_is_one_line(text: str, settings: list[str], said: str) -> None:
    assert why(text, *settings).startswith(said)


@given(st.text(alphabet="${}a: \n'\"|>-&*[],#", max_size=60))
def test_any_text_is_a_job_or_one_line(text: str) -> None:
    said = ""
    try:
        read(text, "a=1")
    except Fail as failed:
        said = failed.text
    assert "\n" not in said


def test_the_command_reads_them_anywhere(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text("vars: {n: 1}\ncommand: sleep ${{n}}\nqueue: ${{q}}\n")

    def call(words: str) -> tuple[int, str]:
        with (tmp_path / "out").open("w+") as out:
            context = Context(words.split(), str(tmp_path), {"HOME": str(tmp_path)}, 0, out.fileno(), out.fileno())
            status = finish(run.run, context)
            out.seek(0)
            return status, out.read()

    for words in ("--set n=7 job.yaml --set q=high --dry-run", "--dry-run=client --set q=high --set n=7 job.yaml"):
        assert call(words) == (0, "bsub -q high sleep 7\n")
    assert call("--dry-run=all job.yaml") == (255, "--dry-run=all: it is one of client, server. Job not submitted.\n")
    status, said = call("--dry-run job.yaml --set")
    assert (status, said.startswith("--set : it is name=value")) == (255, True)
