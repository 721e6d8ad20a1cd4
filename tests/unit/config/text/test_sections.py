"""Sections, rows, comments, continuations, brackets."""

import pytest

from config.model.problems import Problems
from config.text.lines import Reading
from config.text.sections import bare, read_sections, split_words


def rows(text):
    problems = Problems()
    sections = read_sections(text, "f", Reading(problems))
    return [{cell.name: cell.value for cell in row.cells.values()} for s in sections for row in s.rows], problems.all()


def test_a_vertical_section_is_one_row():
    found, problems = rows("Begin Q\nA = 1\nB= x y # comment\nC =\nEnd Q\n")
    assert found == [{"A": "1", "B": "x y", "C": ""}]
    assert not problems


def test_a_horizontal_section_has_a_row_a_line():
    found, problems = rows('Begin H\nNAME  R   D   #Keywords\nh1 () (two words)\n#h2 - -\nh3 (a (b c)) "q # q"\nEnd H')
    assert found == [{"NAME": "h1", "R": "", "D": "two words"}, {"NAME": "h3", "R": "a (b c)", "D": "q # q"}]
    assert not problems


def test_continued_lines_keep_the_number_of_the_first():
    [section] = read_sections("Begin Q\n\nD = one \\\n  two \\\n three\nE = 4\nEnd Q", "f", Reading(Problems()))
    cells = section.rows[0].cells
    assert (cells["D"].value, cells["D"].place.line, cells["E"].place.line) == ("one two three", 3, 6)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("Begin Q\nA = 1\n", 1, "has no 'End Q'"),
        ("Begin Q\nA = 1\nBegin R\nEnd R", 1, "has no 'End Q'"),
        ("A = 1\n", 1, "outside any section"),
        ("Begin Q\nA = 1\nEnd R\n", 3, "ends section Q"),
        ("Begin Q\nA = 1\njunk\nEnd Q", 3, "is not KEY = value"),
        ("Begin Q\nA = 1\nA = 2\nEnd Q", 3, "set twice"),
        ("Begin H\nNAME MXJ\nh1\nEnd H", 3, "has 1 values for 2 columns"),
        ("Begin H\nNAME NAME\nh1 2\nEnd H", 2, "appears twice"),
        ('#INCLUDE "other"\n', 1, "there is no file other"),
    ],
)
def test_what_makes_no_sense_is_reported_with_its_line(text, line, words):
    [problem] = rows(text)[1]
    assert problem.line == line
    assert words in problem.text


def test_brackets_that_never_close_are_plain_characters():
    assert split_words("a (b c") == ["a", "(b", "c"]
    assert split_words("4@[h1 h2] 5@[others] (a b)") == ["4@[h1 h2]", "5@[others]", "(a b)"]
    assert bare("(a) (b)") == "(a) (b)"
    assert bare("((a b))") == "(a b)"
    assert bare('"a b"') == "a b"
