"""Plots: well-formed, each value at its place, what cannot be drawn left out."""

from __future__ import annotations

from xml.etree import ElementTree

from benchmarks.kept.svg import apart, bars, decades, dots, lines
from benchmarks.line import short

SVG = "{http://www.w3.org/2000/svg}"


def circles(plot: str) -> dict[str, tuple[float, float]]:
    """Those that stand for a value, by what they say."""
    found = {}
    for one in ElementTree.fromstring(plot).iter(f"{SVG}circle"):
        said = one.find(f"{SVG}title")
        if said is not None and said.text is not None:
            found[said.text] = (float(one.attrib["cx"]), float(one.attrib["cy"]))
    return found


def words(plot: str) -> list[str | None]:
    return [one.text for one in ElementTree.fromstring(plot).iter(f"{SVG}text")]


def test_a_tenfold_value_stands_one_decade_further() -> None:
    found = circles(dots("t", "ms", {"a": {"x": 1.0, "y": 10.0}, "b": {"x": 100.0}}, ["x", "y"]))
    first, second, third = found["a, x: 1 ms"], found["a, y: 10 ms"], found["b, x: 100 ms"]
    assert round(second[0] - first[0], 1) == round(third[0] - second[0], 1) > 0
    assert first[1] == second[1] < third[1]


def test_a_series_keeps_its_colour_where_another_is_missing() -> None:
    def colour(plot: str) -> str | None:
        (one,) = [one for one in ElementTree.fromstring(plot).iter(f"{SVG}circle") if one.find(f"{SVG}title") is not None]
        return one.attrib["fill"]

    assert colour(dots("t", "ms", {"a": {"y": 1.0}}, ["x", "y"])) == colour(dots("t", "ms", {"a": {"y": 2.0}}, ["z", "y"]))
    assert colour(dots("t", "ms", {"a": {"x": 1.0}}, ["x", "y"])) != colour(dots("t", "ms", {"a": {"y": 1.0}}, ["x", "y"]))


def test_zeros_and_empty_rows_are_left_out_of_a_logarithmic_plot() -> None:
    plot = dots("t", "ms", {"a": {"x": 0.0}, "b": {}, "c": {"x": 3.0}}, ["x", "y"], mark=1.0)
    assert list(circles(plot)) == ["c, x: 3 ms"]
    assert {"a", "b", "y"}.isdisjoint(words(plot))


def test_bars_are_as_long_as_their_values() -> None:
    plot = bars("CPU & more", "ms", {"lavad": 0.5, "agent": 0.25})
    wide = [float(one.attrib["width"]) for one in ElementTree.fromstring(plot).iter(f"{SVG}rect")][1:]
    assert wide[0] == 2 * wide[1] > 0
    assert "0.25 ms" in words(plot)


def test_a_line_goes_up_with_its_values() -> None:
    found = circles(lines("t", "jobs", "ms", {"one": [(1.0, 2.0), (1000.0, 200.0)]}))
    low, high = found["one, 1 jobs: 2 ms"], found["one, 1,000 jobs: 200 ms"]
    assert low[0] < high[0]
    assert low[1] > high[1]


def test_names_at_the_ends_of_lines_never_cover_each_other() -> None:
    assert apart([100.0, 20.0, 104.0, 22.0], 16.0) == [100.0, 20.0, 116.0, 36.0]
    assert apart([], 16.0) == []


def test_decades_hold_all_values_and_are_never_one_point() -> None:
    assert decades([0.02, 700.0]) == (-2, 3)
    assert decades([10.0]) == (1, 2)


def test_numbers_are_short() -> None:
    assert [short(value) for value in (0.12345, 3.0, 12.345, 1234.5, 20000)] == ["0.123", "3", "12.3", "1,234", "20,000"]
