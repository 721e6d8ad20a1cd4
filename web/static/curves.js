// Values over time as curves, by uPlot; `lines`: name and values of each, `said`: the same in words.
import { html, useEffect, useRef } from "./lib.js";

const COLOURS = ["--link", "--run", "--accent", "--susp", "--pend", "--off"];

export function Curves({ title, at, lines, said, high = 170 }) {
  const box = useRef();
  useEffect(() => {
    const css = getComputedStyle(document.documentElement), colour = (name) => css.getPropertyValue(name).trim();
    const axis = { stroke: colour("--text"), grid: { stroke: colour("--line") } };
    const filled = (n) => (lines.length === 1 ? { fill: colour(COLOURS[n]) + "33" } : {});
    const made = new uPlot({
      title, width: Math.max(280, box.current.clientWidth), height: high, cursor: { drag: { x: false } }, axes: [axis, { ...axis, size: 60 }],
      scales: { y: { range: (_, low, most) => [0, Math.max(most * 1.1, 0.1)] } },
      series: [{}, ...lines.map(([label], n) => ({ label, stroke: colour(COLOURS[n]), width: 2, ...filled(n) }))],
    }, [at, ...lines.map(([, values]) => values)], box.current);
    const fit = () => made.setSize({ width: Math.max(280, box.current.clientWidth), height: high });
    addEventListener("resize", fit);
    return () => { removeEventListener("resize", fit); made.destroy(); };
  }, [at[0], at[at.length - 1], JSON.stringify(lines)]);
  return html`<div ref=${box} role="img" aria-label=${said}></div>`;
}
