// The cluster now: jobs by state, hosts as a map, what waits and why.
import { html, useState, useRecord, Shown, Table, Title, Meter, number, percent, hostPath, queuePath } from "./lib.js";

const share = (part, whole) => (whole > 0 ? part / whole : 0);
const BY = {
  slots: ["slots in use", (h) => share(h.used, h.slots), (h) => `${h.used} of ${h.slots} slots`],
  mem: ["memory in use", (h) => (h.mem === null ? 0 : 1 - share(h.mem, h.max_mem)), (h) => (h.mem === null ? "memory not known" : `${percent(100 - 100 * share(h.mem, h.max_mem))} of memory`)],
  cpu: ["CPUs in use", (h) => (h.cpu || 0) / 100, (h) => `CPU ${percent(h.cpu)}`],
  gpus: ["GPUs in use", (h) => share(h.gpus_used, h.gpus), (h) => `${h.gpus_used} of ${h.gpus} GPUs`],
};
export const isOff = (status) => status.startsWith("un");
const isClosed = (status) => status.startsWith("closed") && status !== "closed_Full" && status !== "closed_Excl";
const NAMED = 24;
const level = (x) => (x <= 0.01 ? 0 : x < 0.4 ? 1 : x < 0.75 ? 2 : x < 0.99 ? 3 : 4);

export function HostMap({ hosts }) {
  const [by, setBy] = useState("slots");
  const [, of, say] = BY[by];
  const colour = (h) => (isOff(h.status) ? "uoff" : isClosed(h.status) ? "uclosed" : `u${level(of(h))}`);
  return html`<div class="bar"><label>Colour by<select value=${by} onChange=${(e) => setBy(e.target.value)}>
      ${Object.entries(BY).map(([key, [text]]) => html`<option value=${key}>${text}</option>`)}</select></label></div>
    <ul aria-label="Hosts" class=${"map" + (hosts.length > 150 ? " small" : hosts.length <= NAMED ? " named" : "")}>${hosts.map((h) => html`<li key=${h.name}><a class=${hosts.length <= NAMED ? "" : colour(h)} href=${hostPath(h.name)}
      title=${`${h.name}: ${h.status}, ${say(h)}`} aria-label=${`${h.name}: ${h.status}, ${say(h)}`}>${hosts.length <= NAMED && html`<i class=${colour(h)}></i><b>${h.name}</b><span class="soft">${say(h)}</span>`}</a></li>`)}</ul>
    <ul class="legend" aria-hidden="true"><li><i class="u0"></i>idle</li><li><i class="u1"></i>below 40 %</li><li><i class="u2"></i>below 75 %</li><li><i class="u3"></i>below all</li>
      <li><i class="u4"></i>all</li><li><i class="uclosed"></i>closed</li><li><i class="uoff"></i>away</li></ul>`;
}

export const watts = (w) => (w === null || w === undefined ? "–" : w >= 10000 ? `${(w / 1000).toFixed(1)} kW` : `${number(Math.round(w))} W`);
const power = (hosts) => { const known = hosts.filter((h) => h.power !== null); return known.length ? known.reduce((sum, h) => sum + h.power, 0) : null; };
const Tile = ({ name, value, more, part, whole }) => html`<li class="card"><span class="soft">${name}</span><b>${value}</b>
  <span class="soft">${more}</span>${whole !== undefined && html`<${Meter} part=${part} whole=${whole} />`}</li>`;

export function Cluster() {
  const found = useRecord("/overview", 5);
  return html`<${Title} text="Cluster" /><${Shown} of=${found}>${(o) => html`
    <ul class="tiles" aria-label="The cluster in numbers">
      <${Tile} name="Running" value=${number(o.counts.run)} more="jobs and elements" />
      <${Tile} name="Waiting" value=${number(o.counts.pend + o.counts.psusp)} more=${`${number(o.counts.psusp)} of them held`} />
      <${Tile} name="Suspended" value=${number(o.counts.ssusp + o.counts.ususp)} more=${o.counts.unknown ? `${number(o.counts.unknown)} on silent hosts` : "none on silent hosts"} />
      <${Tile} name="Slots" value=${`${number(o.used)} / ${number(o.slots)}`} more=${percent(100 * share(o.used, o.slots)) + " in use"} part=${o.used} whole=${o.slots} />
      <${Tile} name="Memory" value=${`${number(Math.round((o.mem - o.mem_free) / 1024))} / ${number(Math.round(o.mem / 1024))} GB`} more="in use" part=${o.mem - o.mem_free} whole=${o.mem} />
      ${o.gpus > 0 && html`<${Tile} name="GPUs" value=${`${number(o.gpus_used)} / ${number(o.gpus)}`} more="with jobs" part=${o.gpus_used} whole=${o.gpus} />`}
      ${power(o.hosts) !== null && html`<${Tile} name="Power of GPUs" value=${watts(power(o.hosts))} more="as their drivers tell" />`}
    </ul>
    <section class="card"><h2>Hosts</h2><p class="soft">${number(o.host_count)} hosts: ${Object.entries(o.hosts_by_status).map(([s, n]) => `${number(n)} ${s}`).join(", ") || "none"}</p>
      <${HostMap} hosts=${o.hosts} /></section>
    <div class="two">
      <section class="card"><h2>What waits, and why</h2>${o.reasons.length === 0 ? html`<p class="soft">Nothing waits.</p>` : html`<${Table} name="What waits, and why">
        <thead><tr><th class="n" scope="col">Jobs</th><th scope="col">Reason</th></tr></thead>
        <tbody>${o.reasons.map((r) => html`<tr><td class="n">${number(r.jobs)}</td><th class="text" scope="row">${r.text}</th></tr>`)}</tbody><//>`}
        <p><a href="#/jobs?state=waiting">Waiting jobs</a></p></section>
      <section class="card"><h2>Queues <span class="soft">in slots</span></h2><${QueueTable} queues=${o.queues} /></section>
    </div>`}<//>`;
}

export const QueueTable = ({ queues }) => html`<${Table} name="Queues, in slots">
  <thead><tr><th scope="col">Queue</th><th class="n" scope="col">Priority</th><th scope="col">Status</th><th class="n" scope="col">Waiting</th><th class="n" scope="col">Running</th><th class="n" scope="col">Suspended</th></tr></thead>
  <tbody>${queues.map((q) => html`<tr key=${q.name}><th scope="row"><a href=${queuePath(q.name)}>${q.name}</a></th><td class="n">${q.priority}</td><td>${q.status}</td>
    <td class="n">${number(q.pend)}</td><td class="n">${number(q.run)}</td><td class="n">${number(q.susp)}</td></tr>`)}</tbody><//>`;
