// Hosts over time: what ran, what runs, what is promised.
import { html, useState, useEffect, useRef, useRecord, Shown, Table, Title, time, jobPath, query } from "./lib.js";

const SPANS = [[900, "15 minutes"], [3600, "1 hour"], [6 * 3600, "6 hours"], [86400, "1 day"], [7 * 86400, "7 days"]];
const LEFT = 110, TOP = 22;
const rowOf = (hosts) => (hosts <= 6 ? 72 : hosts <= 16 ? 44 : 26);

const LEGEND = [["run", "running, to its run limit"], ["past", "ended"], ["held", "promised: the reserved start of a waiting job"], ["reservation", "advance reservation"]];

const SAID = { past: "ended", run: "running", held: "promised", reservation: "reservation" };
const until = (b) => (b.open ? "no end known" : time(b.end));
const words = (b) => `${b.id} of ${b.user}, ${SAID[b.kind]}: ${b.slots} ${b.slots === 1 ? "slot" : "slots"}, ${time(b.begin)} to ${until(b)}`;

// The same in words, made when it is opened.
function InWords({ blocks }) {
  const [open, setOpen] = useState(false);
  return html`<details onToggle=${(e) => setOpen(e.target.open)}><summary>As a table</summary>${open && html`<${Table} name="Bars of the chart"><thead><tr><th scope="col">Job</th><th scope="col">What</th><th scope="col">Host</th><th class="n" scope="col">Slots</th><th scope="col">User</th><th scope="col">From</th><th scope="col">To</th></tr></thead>
    <tbody>${[...blocks].sort((a, b) => b.begin - a.begin).map((b) => html`<tr key=${b.id + b.host + b.begin}><th scope="row">${b.kind === "reservation" ? b.id : html`<a href=${jobPath(b.id)}>${b.id}</a>`}</th><td>${SAID[b.kind]}</td><td>${b.host}</td><td class="n">${b.slots}</td><td>${b.user}</td><td>${time(b.begin)}</td><td>${until(b)}</td></tr>`)}</tbody><//>`}</details>`;
}

// Where each bar of a host lies: as high as its share of the slots, on the first of them that are free when it begins.
function placed(blocks, slots) {
  const most = Math.max(slots, 1), ends = new Array(most).fill(-Infinity);
  return [...blocks].sort((a, b) => a.begin - b.begin).map((block) => {
    const high = Math.min(Math.max(block.slots, 1), most);
    let first = 0, free = 0;
    for (let at = 0; at < most && free < high; at += 1) { if (ends[at] <= block.begin + 1) { free += 1; } else { free = 0; first = at + 1; } }
    if (free < high) first = 0;
    ends.fill(block.end, first, first + high);
    return [block, first / most, high / most];
  });
}

function Drawn({ chart }) {
  const ROW = rowOf(chart.hosts.length), box = useRef(), [width, setWidth] = useState(900);
  useEffect(() => { const fit = () => setWidth(Math.max(320, box.current.clientWidth)); fit(); addEventListener("resize", fit); return () => removeEventListener("resize", fit); }, []);
  const x = (at) => LEFT + (Math.min(Math.max(at, chart.begin), chart.end) - chart.begin) / (chart.end - chart.begin) * (width - LEFT - 8);
  const of = new Map(chart.hosts.map((h) => [h.host, []]));
  for (const block of chart.blocks) of.get(block.host)?.push(block);
  const ticks = Array.from({ length: 7 }, (_, n) => chart.begin + (chart.end - chart.begin) * n / 6);
  return html`<div ref=${box} class="scroll" tabindex="0"><svg class="chart" width=${width} height=${TOP + ROW * chart.hosts.length + 6} role="group" aria-label=${`${chart.blocks.length} bars on ${chart.hosts.length} hosts from ${time(chart.begin)} to ${time(chart.end)}`}>
    ${ticks.map((at) => html`<line class="axis" x1=${x(at)} x2=${x(at)} y1=${TOP - 4} y2=${TOP + ROW * chart.hosts.length} /><text x=${x(at)} y="13" text-anchor=${at === chart.end ? "end" : "middle"}>${time(at).slice(-8, -3)}</text>`)}
    ${chart.hosts.map((h, n) => html`<g role="group" aria-label=${h.host}><text x="4" aria-hidden="true" y=${TOP + n * ROW + ROW / 2 + 4}>${h.host.slice(0, 14)}</text><line class="axis" x1="0" x2=${width} y1=${TOP + (n + 1) * ROW - 1} y2=${TOP + (n + 1) * ROW - 1} />
        ${placed(of.get(h.host), h.slots).map(([b, top, part]) => { const y = TOP + n * ROW + 1 + top * (ROW - 4), high = part * (ROW - 4), from = b.kind === "run" ? Math.max(b.begin, chart.now) : b.begin; return html`<a href=${b.kind === "reservation" ? "#/chart" : jobPath(b.id)} tabindex=${b.kind === "past" ? -1 : undefined} aria-label=${words(b)}><rect aria-hidden="true" class=${b.kind} x=${x(b.begin)} width=${Math.max(2, x(b.end) - x(b.begin) - 1)} y=${y} height=${Math.max(1.5, high - 1)} rx="2">
          <title>${words(b)}</title></rect>
          ${high >= 15 && x(b.end) - x(from) > 9 * b.id.length + 8 && html`<text class=${"in " + b.kind} aria-hidden="true" x=${x(from) + 5} y=${y + high / 2 + 4}>${b.id}</text>`}</a>`; })}</g>`)}
    <line class="now" x1=${x(chart.now)} x2=${x(chart.now)} y1=${TOP - 4} y2=${TOP + ROW * chart.hosts.length} /></svg></div>`;
}

export function Chart({ search: given }) {
  const [span, setSpan] = useState(+given.past || 3600), [search, setSearch] = useState(""), [cursors, setCursors] = useState([""]), [now, setNow] = useState(Math.floor(Date.now() / 1000));
  useEffect(() => { const beat = setInterval(() => setNow(Math.floor(Date.now() / 1000)), 15000); return () => clearInterval(beat); }, []);
  const path = "/chart" + query({ from: now - span, to: now + span, search, limit: 50, cursor: cursors[cursors.length - 1] });
  const found = useRecord(path, 60), kept = useRef(null);
  if (found.value) kept.current = found.value;
  return html`<${Title} text="Chart of hosts" /><form class="bar" role="search" onSubmit=${(e) => e.preventDefault()}>
    <label>Past, and future<select value=${span} onChange=${(e) => setSpan(+e.target.value)}>${SPANS.map(([n, text]) => html`<option value=${n}>${text}</option>`)}</select></label>
    <label class="grow">Hosts: part of a name<input type="search" value=${search} onInput=${(e) => { setSearch(e.target.value); setCursors([""]); }} /></label></form>
    <div class="card"><${Shown} of=${{ ...found, value: found.value || kept.current }}>${(chart) => html`<${Drawn} chart=${chart} />
      <ul class="legend">${LEGEND.map(([kind, text]) => html`<li><svg width="18" height="12" aria-hidden="true"><rect class=${kind} x="1" y="1" width="16" height="10" rx="2" /></svg> ${text}</li>`)}</ul>
      <${InWords} blocks=${chart.blocks} />
      ${chart.more && html`<p class="soft">There are more bars than are shown: take a shorter time or fewer hosts.</p>`}
      ${(cursors.length > 1 || chart.next) && html`<div class="bar"><button disabled=${cursors.length < 2} onClick=${() => setCursors(cursors.slice(0, -1))}>Page before</button><button disabled=${!chart.next} onClick=${() => setCursors([...cursors, chart.next])}>Next page</button></div>`}`}<//></div>`;
}
