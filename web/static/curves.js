// Values over time as curves, by uPlot; `lines`: name and values of each, `said`: the same in words.
import { html, useDark, useEffect, useRef, time } from "./lib.js";

const COLOURS = ["--link", "--run", "--accent", "--susp", "--pend", "--off"];

const two = (n) => String(n).padStart(2, "0");
// The day where it changes, else the clock, with seconds where marks are closer than a minute.
function tick(at, step, before) {
  const d = new Date(at * 1000), day = `${two(d.getMonth() + 1)}-${two(d.getDate())}`;
  if (step >= 86400 || (before && new Date(before * 1000).getDate() !== d.getDate())) return day;
  return `${two(d.getHours())}:${two(d.getMinutes())}${step < 60 ? `:${two(d.getSeconds())}` : ""}`;
}

export function Curves({ title, at, lines, said, high = 170 }) {
  const box = useRef(), dark = useDark();
  useEffect(() => {
    const css = getComputedStyle(document.documentElement), colour = (name) => css.getPropertyValue(name).trim();
    const clock = (_, ticks, __, ___, step) => ticks.map((at, n) => tick(at, step, n ? ticks[n - 1] : 0));
    const axis = { stroke: colour("--text"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } };
    const filled = (n) => (lines.length === 1 ? { fill: colour(COLOURS[n]) + "33" } : {});
    const made = new uPlot({
      title, width: Math.max(280, box.current.clientWidth), height: high, cursor: { drag: { x: false } }, axes: [{ ...axis, values: clock }, { ...axis, size: 60 }],
      scales: { y: { range: (_, low, most) => [0, Math.max(most * 1.1, 0.1)] } },
      series: [{ value: (_, at) => (at ? time(at) : "–") }, ...lines.map(([label], n) => ({ label, stroke: colour(COLOURS[n]), width: 2, points: { show: at.length < 2 }, ...filled(n) }))],
    }, [at, ...lines.map(([, values]) => values)], box.current);
    const fit = () => made.setSize({ width: Math.max(280, box.current.clientWidth), height: high });
    addEventListener("resize", fit);
    return () => { removeEventListener("resize", fit); made.destroy(); };
  }, [at[0], at[at.length - 1], JSON.stringify(lines), dark]);
  return html`<div role="img" aria-label=${said}><div ref=${box} aria-hidden="true"></div></div>`;
}
