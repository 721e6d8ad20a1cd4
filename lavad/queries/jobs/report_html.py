"""lava report --html: one page that needs nothing else, with plots (SVG): held, used and wasted over time, by whom, and top jobs.

Rule: every name comes from a user, and is escaped. No script.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from msgspec.structs import replace

from lavad.core.lang.ids import show as show_key
from lavad.queries.frame import formats
from lavad.queries.frame.request import Request, Shown, out
from lavad.queries.jobs.report_rows import HOUR, KWH, Row, summed, waste
from lavad.store.asked import Asked, Share, Wasteful

_STEPS = (3600.0, 6 * 3600.0, 86400.0, 7 * 86400.0, 30 * 86400.0, 365 * 86400.0)
_MOST_STEPS = 60
_MOST_BARS = 15
_WIDTH, _HEIGHT = 900, 220
_LEFT, _BOTTOM = 60, 24
_STYLE = """
:root{--fg:#1d2433;--bg:#fff;--soft:#667;--line:#dde;--used:#1f77b4;--wasted:#e4802b;--wait:#7a5195}
@media(prefers-color-scheme:dark){:root{--fg:#e6e8ef;--bg:#14171f;--soft:#9aa;--line:#333a4a;--used:#5aa7e0;--wasted:#f0a35c;--wait:#b58fd0}}
body{font:15px/1.45 system-ui,sans-serif;color:var(--fg);background:var(--bg);max-width:960px;margin:2em auto;padding:0 1em}
table{border-collapse:collapse;width:100%;font-size:13px;font-variant-numeric:tabular-nums}
th,td{padding:3px 8px;text-align:right;border-bottom:1px solid var(--line)}th:first-child,td:first-child{text-align:left}
.t{text-align:left}.tiles{display:flex;flex-wrap:wrap;gap:12px}.tiles div{border:1px solid var(--line);border-radius:8px;
padding:8px 14px}
.tiles b{display:block;font-size:22px}svg{width:100%;height:auto}svg text{fill:var(--soft);font-size:11px}
.used{fill:var(--used)}.wasted{fill:var(--wasted)}.wait{fill:var(--wait)}.axis{stroke:var(--line)}.scroll{overflow-x:auto}
"""


def page(request: Request, asked: Asked, shares: list[Share], groups: list[tuple[str, list[Row]]], most: int) -> Iterator[Shown]:
    """The whole page, piece by piece."""
    total = summed("all", shares)
    begin, end = _period(request, asked, shares)
    title = f"Use of {request.view.name} from {formats.time_with_year(begin)} to {formats.time_with_year(end)}"
    yield out(
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>\n<h1>{escape(title)}</h1>\n"
    )
    yield out(f"<p>Jobs that ended in this time. Waste: slots without CPU time, GPUs below 5 % of use.</p>\n{_tiles(total)}")
    yield from _over_time(request, asked, begin, end)
    for group, rows in groups:
        yield out(_bars(group, rows))
        yield out(_table(group, rows))
    for gpus in (False, True):
        yield out(_top(request.view.reader.wasteful(asked, most, gpus), gpus))
    yield out("</body></html>\n")


def _period(request: Request, asked: Asked, shares: list[Share]) -> tuple[float, float]:
    """Where no begin was asked for, from the first end of a job on."""
    begin, end = asked.completed or (0.0, request.now)
    first = min((share.first for share in shares if share.first), default=end)
    return max(begin, first - 1.0) if shares else begin, end


def _tiles(total: Row) -> str:
    gpus = total.gpus
    tiles = [
        (str(total.jobs), f"jobs, {total.exited} of them in EXIT"),
        (f"{total.slots / HOUR:.1f} h", f"of slots, {waste(total.slots_wasted, total.slots)} without CPU time"),
        (f"{gpus.held / HOUR:.1f} h", f"of GPUs, {waste(gpus.idle, gpus.held)} idle"),
        (formats.hms(total.mean_wait), f"mean wait, {formats.hms(total.longest_wait)} at most"),
        (f"{gpus.energy / KWH:.1f} kWh", "of GPUs"),
    ]
    return '<div class="tiles">' + "".join(f"<div><b>{value}</b>{escape(words)}</div>" for value, words in tiles) + "</div>\n"


def _over_time(request: Request, asked: Asked, begin: float, end: float) -> Iterator[Shown]:
    """Plots by hours, days or weeks."""
    step = next((step for step in _STEPS if (end - begin) / step <= _MOST_STEPS), _STEPS[-1])
    starts = [begin + at * step for at in range(max(1, int((end - begin) / step) + 1))][: _MOST_STEPS + 1]
    rows = []
    for start in starts:
        window = (start, min(start + step, end + 1.0) - 1e-6)  # both ends of a window count
        rows.append(summed("", request.view.reader.shares(replace(asked, completed=window))))
    labels = [formats.short_time(start) for start in starts]
    hours = [((row.slots - row.slots_wasted) / HOUR, row.slots_wasted / HOUR) for row in rows]
    yield out(_plot("Slot hours of jobs by the time of their end: with CPU time, and without", labels, hours, "used", "h"))
    if any(row.gpus.held for row in rows):
        cards = [((row.gpus.held - row.gpus.idle) / HOUR, row.gpus.idle / HOUR) for row in rows]
        yield out(_plot("GPU hours: at work, and idle", labels, cards, "used", "h"))
    waits = [(row.mean_wait / 60, 0.0) for row in rows]
    yield out(_plot("Mean time that they had waited", labels, waits, "wait", "min"))


def _plot(title: str, labels: Sequence[str], values: Sequence[tuple[float, float]], kind: str, unit: str) -> str:
    """Columns of two parts, the second on the first."""
    top = max((low + high for low, high in values), default=0.0) or 1.0
    room, tall = _WIDTH - _LEFT, _HEIGHT - _BOTTOM - 10
    wide = room / max(1, len(values))
    parts = [f'<h2>{escape(title)}</h2>\n<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(title)}">']
    for share in (0.0, 0.5, 1.0):
        y = 10 + tall * (1 - share)
        parts.append(f'<line class="axis" x1="{_LEFT}" x2="{_WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{top * share:.3g} {unit}</text>')
    every = max(1, len(labels) // 8)
    for at, (label, (low, high)) in enumerate(zip(labels, values, strict=True)):
        x, gap = _LEFT + at * wide, min(2.0, wide / 5)
        base = 10.0 + tall
        for amount, name in ((low, kind), (high, "wasted")):
            height = tall * amount / top
            if height > 0:
                base -= height
                parts.append(
                    f'<rect class="{name}" x="{x + gap:.1f}" y="{base:.1f}" '
                    f'width="{max(0.5, wide - 2 * gap):.1f}" height="{height:.1f}">'
                    f"<title>{escape(label)}: {amount:.2f} {unit}</title></rect>"
                )
        if at % every == 0:
            parts.append(f'<text x="{x:.1f}" y="{_HEIGHT - 6}">{escape(label)}</text>')
    return "".join(parts) + "</svg>\n"


def _bars(group: str, rows: list[Row]) -> str:
    """Those who held the most slots, each a bar: with CPU time, and without."""
    rows = sorted(rows, key=lambda row: -row.slots)[:_MOST_BARS]
    top = max((row.slots for row in rows), default=0.0) or 1.0
    tall = 22 * len(rows) + 6
    parts = [
        f'<h2>By {escape(group)}</h2>\n<svg viewBox="0 0 {_WIDTH} {tall}" role="img" aria-label="Slot hours by {escape(group)}">'
    ]
    room = _WIDTH - 260
    for at, row in enumerate(rows):
        y, used = 22 * at + 2, row.slots - row.slots_wasted
        parts.append(f'<text x="150" y="{y + 13}" text-anchor="end">{escape(row.name[:22])}</text>')
        parts.append(f'<rect class="used" x="158" y="{y}" width="{room * used / top:.1f}" height="17"/>')
        lost = room * row.slots_wasted / top
        parts.append(f'<rect class="wasted" x="{158 + room * used / top:.1f}" y="{y}" width="{lost:.1f}" height="17"/>')
        parts.append(f'<text x="{164 + room * row.slots / top:.1f}" y="{y + 13}">{row.slots / HOUR:.1f} h</text>')
    return "".join(parts) + "</svg>\n"


def _table(group: str, rows: list[Row]) -> str:
    titles = ("jobs", "exited", "slot h", "CPU h", "waste", "GPU h", "idle", "kWh", "mean wait", "longest")
    head = f"<tr><th>{escape(group)}</th>" + "".join(f"<th>{title}</th>" for title in titles) + "</tr>\n"
    body = []
    for row in sorted(rows, key=lambda row: -row.slots):
        gpus = row.gpus
        cells = (
            row.jobs,
            row.exited,
            f"{row.slots / HOUR:.2f}",
            f"{row.cpu / HOUR:.2f}",
            waste(row.slots_wasted, row.slots),
            f"{gpus.held / HOUR:.2f}",
            waste(gpus.idle, gpus.held),
            f"{gpus.energy / KWH:.2f}",
            formats.hms(row.mean_wait),
            formats.hms(row.longest_wait),
        )
        body.append(f"<tr><td>{escape(row.name)}</td>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>\n")
    return f'<div class="scroll"><table>{head}{"".join(body)}</table></div>\n'


def _top(rows: list[Wasteful], gpus: bool) -> str:
    """The jobs that wasted the most; "" where none did."""
    if not rows:
        return ""
    kind = "GPU" if gpus else "slot"
    head = '<tr><th>job</th><th class="t">user</th><th class="t">queue</th>'
    head += f'<th>{kind} h</th><th>wasted</th><th class="t">name</th></tr>\n'
    body = "".join(
        f'<tr><td>{show_key(row.key)}</td><td class="t">{escape(row.user)}</td><td class="t">{escape(row.queue)}</td>'
        f'<td>{row.held / HOUR:.2f}</td><td>{row.wasted / HOUR:.2f}</td><td class="t">{escape(row.name[:80])}</td></tr>\n'
        for row in rows
    )
    title = f"Jobs that wasted the most {kind} hours"
    return f'<h2>{title}</h2><div class="scroll"><table>{head}{body}</table></div>\n'
