"""bsub's own way of reading options: never is one read as another."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.client.context import Fail
from cli.client.options import read_command_options
from cli.submit.submit_options import bmod_table, bsub_table, last_rival, merged, propagated
from proto.options import FLAG, OPTIONS

TABLE = bsub_table()
REFUSED = [option.name for option in OPTIONS if option.unsupported and option.only != "bmod"]
ALIAS = {option.name: option.same_as for option in OPTIONS if option.same_as}
TAKEN = [option for option in OPTIONS if option.only != "bmod" and not option.unsupported]
TAKEN_FLAGS = sorted(option.name for option in TAKEN if option.takes == FLAG)
TAKEN_VALUED = sorted(option.name for option in TAKEN if option.takes != FLAG)


def read(*words: str):
    return read_command_options(TABLE, list(words))


def test_options_end_at_the_first_word_that_is_none():
    assert read("-n", "4", "-H", "ls", "-l", "-n") == ({"n": "4", "H": True}, ["ls", "-l", "-n"])


def test_two_dashes_end_the_options_and_of_one_given_twice_the_last_counts():
    assert read("-n", "4", "-H", "-n", "2", "--", "-x", "y") == ({"H": True, "n": "2"}, ["-x", "y"])


@pytest.mark.parametrize(
    ("word", "name", "value"),
    [
        ("-n4", "n", "4"),
        ("-W1:30", "W", "1:30"),
        ("-oout.%J", "o", "out.%J"),
        ("-o/tmp/x", "o", "/tmp/x"),
        ("-sp50", "sp", "50"),
        ("-oo/tmp/x", "oo", "/tmp/x"),
        ("-cwd/tmp", "cwd", "/tmp"),
        ("-Japple-1", "J", "apple-1"),
        ("-M4GB", "M", "4GB"),
    ],
)
def test_a_value_may_be_glued(word, name, value):
    assert read(word, "cmd") == ({name: value}, ["cmd"])


def test_a_resource_requirement_may_be_glued():
    assert read("-Rspan[hosts=1]", "cmd") == ({"R": ["span[hosts=1]"]}, ["cmd"])


@pytest.mark.parametrize("word", ["-gpus", "-gpunum=1", "-queue", "-name=x", "-host", "-Y", "-?", "--gpu", "-wide"])
def test_what_looks_like_a_long_name_is_never_a_letter_with_a_value(word):
    with pytest.raises(Fail, match="bsub: illegal option -- "):
        read(word, "4", "cmd")


def test_long_names_that_begin_with_a_letter_of_another_are_themselves():
    """The peer read -gpu as -g pu, -cwd as -c wd, -oo as -o o, -env as -e nv."""
    options, words = read("-gpu", "num=1", "-cwd", "/tmp", "-oo", "a", "-eo", "b", "-env", "none", "-app", "x", "true")
    assert options == {"gpu": "num=1", "cwd": "/tmp", "oo": "a", "eo": "b", "env": "none", "app": "x"}
    assert words == ["true"]


def test_gpu_takes_a_lone_dash():
    assert read("-gpu", "-", "true") == ({"gpu": "-"}, ["true"])


@pytest.mark.parametrize("words", [("-q",), ("-q", "-n", "4", "true"), ("-H", "-J")])
def test_a_missing_argument_is_said(words):
    with pytest.raises(Fail, match=r"option requires an argument -- [qJ]$"):
        read(*words)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_lava_has_not_is_refused_by_name(name):
    with pytest.raises(Fail, match=f"^bsub: option -{name} is not supported by lava: [^\n]+$"):
        read(f"-{name}", "x", "true")


def test_a_value_that_asks_for_nothing_is_taken():
    assert read("-csm", "n", "-core_isolation", "0", "true") == ({}, ["true"])


@pytest.mark.parametrize(("name", "same"), sorted(ALIAS.items()))
def test_the_interactive_modes_over_ssh_are_those_over_tls(name, same):
    assert read(f"-{name}", "true") == ({same: True}, ["true"])


def test_repeated_requirements_gather_and_other_options_are_the_last():
    options, _ = read("-R", "a", "-n", "1", "-R", "b", "-n", "2", "true")
    assert options == {"R": ["a", "b"], "n": "2"}


@given(st.data())
def test_every_known_option_reads_back(data: st.DataObject):
    pick = st.one_of(
        st.sampled_from(TAKEN_FLAGS).map(lambda name: (name, True)),
        st.tuples(st.sampled_from(TAKEN_VALUED), st.text(min_size=0, max_size=8).filter(lambda t: not TABLE.is_option(t))),
    )
    wishes = data.draw(st.lists(pick, max_size=8))
    command = data.draw(st.lists(st.text(max_size=5), max_size=3))
    words = [word for name, value in wishes for word in ([f"-{name}"] if value is True else [f"-{name}", str(value)])]
    options, rest = read(*words, "cmd", *command)
    assert rest == ["cmd", *command]
    for name, value in wishes:
        if name in ("R", "a", "f"):
            assert value in options[name]
    assert set(options) == {ALIAS.get(name, name) for name, _ in wishes}


@given(st.lists(st.text(max_size=12), max_size=6))
def test_any_words_are_read_or_refused(words: list[str]):
    with contextlib.suppress(Fail):
        options, rest = read(*words)
        assert len(rest) <= len(words)
        assert all(name in TABLE.valued for name in options)


def test_the_last_of_rivals_wins():
    assert last_rival(read("-o", "a", "-oo", "b", "x")[0]) == {"oo": "b"}
    assert last_rival(read("-oo", "b", "-o", "a", "x")[0]) == {"o": "a"}
    assert last_rival(read("-r", "-rn", "-r", "x")[0]) == {"r": True}


def test_the_command_line_wins_over_the_script_as_a_whole():
    below: dict[str, str | bool | list[str]] = {"q": "a", "n": "2", "R": ["x", "y"], "r": True, "o": "f"}
    assert merged(below, {"n": "4", "R": ["z"], "rn": True, "oo": "g"}) == {
        "q": "a",
        "n": "4",
        "R": ["z"],
        "rn": True,
        "oo": "g",
    }


def test_bmod_knows_each_option_with_n_behind_it():
    options, words = read_command_options(bmod_table(), ["-bn", "-nn", "-n", "2", "-gpun", "-Rn", "-rn", "-W", "5", "12"])
    assert options == {"bn": True, "nn": True, "n": "2", "gpun": True, "Rn": True, "rn": True, "W": "5"}
    assert words == ["12"]


ENV = {"A": "1", "B": "2", "PATH": "/bin"}


@pytest.mark.parametrize(
    ("wish", "kept"),
    [
        (None, ENV),
        ("all", ENV),
        ("none", {}),
        ("all, ~A", {"B": "2", "PATH": "/bin"}),
        ("all,~A,~B,C=x y", {"PATH": "/bin", "C": "x y"}),
        ("all, A='x, y', D=~z", {**ENV, "A": "x, y", "D": "~z"}),
        ("A, C=3", {"A": "1", "C": "3"}),
        ("none, C=3", {"C": "3"}),
        ("MISSING", {}),
        ("all, E=", {**ENV, "E": ""}),
    ],
)
def test_env_says_which_variables_go_along(wish, kept):
    assert propagated(ENV, wish) == kept


@pytest.mark.parametrize("wish", ["A, none", "=x", "A, all", "A B", "C='x"])
def test_a_bad_env_is_refused(wish):
    with pytest.raises(Fail, match="Bad -env specification"):
        propagated(ENV, wish)
