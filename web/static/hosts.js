// Hosts, and one with its jobs and GPUs.
import { html, useState, useEffect, useRecord, Shown, Table, Title, Action, Meter, number, percent, time, size, hostPath, jobPath, query } from "./lib.js";
import { JobTable } from "./jobs.js";
import { watts } from "./cluster.js";

const mb = (value) => size((value || 0) * 1024);

export function Hosts() {
  const [typed, setTyped] = useState(""), [search, setSearch] = useState(""), [cursors, setCursors] = useState([""]);
  useEffect(() => { const wait = setTimeout(() => { setSearch(typed); setCursors([""]); }, 300); return () => clearTimeout(wait); }, [typed]);
  const found = useRecord("/hosts" + query({ search, cursor: cursors[cursors.length - 1], limit: 100 }), 10);
  return html`<${Title} text="Hosts" /><form class="bar" role="search" onSubmit=${(e) => e.preventDefault()}><label class="grow">Search: part of a name, or a status<input type="search" value=${typed} onInput=${(e) => setTyped(e.target.value)} /></label></form>
    <div class="card"><${Shown} of=${found}>${(page) => html`<${Table} name="Hosts"><thead><tr><th scope="col">Host</th><th scope="col">Status</th><th class="n" scope="col">Slots</th><th class="n" scope="col">CPU</th><th class="n" scope="col">Load</th><th class="n" scope="col">Memory free</th><th class="n" scope="col">GPUs</th><th class="n" scope="col">W of GPUs</th><th scope="col">Comment</th></tr></thead>
      <tbody>${page.hosts.map((h) => html`<tr key=${h.name}><th scope="row"><a href=${hostPath(h.name)}>${h.name}</a></th><td>${h.status}</td><td class="n">${number(h.used)} / ${number(h.slots)}<${Meter} part=${h.used} whole=${h.slots} /></td><td class="n">${percent(h.cpu)}</td>
        <td class="n">${h.load === null ? "–" : h.load.toFixed(1)}</td><td class="n">${mb(h.mem)} / ${mb(h.max_mem)}</td><td class="n">${h.gpus ? `${h.gpus_used} / ${h.gpus}` : "–"}${h.gpus_closed ? `, ${h.gpus_closed} closed` : ""}</td><td class="n">${h.power === null ? "–" : number(Math.round(h.power))}</td><td class="cut" title=${h.comment}>${h.comment}</td></tr>`)}</tbody><//>
      <div class="bar"><button disabled=${cursors.length < 2} onClick=${() => setCursors(cursors.slice(0, -1))}>Page before</button><button disabled=${!page.next} onClick=${() => setCursors([...cursors, page.next])}>Next page</button></div>`}<//></div>`;
}

export function Host({ one }) {
  const found = useRecord(`/hosts/${encodeURIComponent(one)}`, 5);
  const path = `/hosts/${encodeURIComponent(one)}`;
  return html`<${Title} text=${`Host ${one}`} /><${Shown} of=${found}>${(h) => html`<p><b>${h.row.status}</b> ${h.row.comment}</p>
    ${h.may_change && html`<div class="bar">${h.row.status === "closed_Adm" ? html`<${Action} label="Open" path=${path + "/open"} sure=${`Let jobs start on ${one}?`} done=${found.load} />`
      : html`<${Action} label="Close" bad path=${path + "/close"} sure=${`Start no more jobs on ${one}?`} done=${found.load} fields=${[{ name: "comment", label: "Comment" }]} />`}</div>`}
    <section class="card"><h2>Facts</h2><dl><dt>Slots</dt><dd>${number(h.row.used)} of ${number(h.row.slots)} in use${h.row.reserved ? `, ${h.row.reserved} reserved` : ""}</dd><dt>CPUs</dt><dd>${h.cpus}, ${percent(h.row.cpu)} busy, load ${h.row.load === null ? "–" : h.row.load.toFixed(1)}</dd>
      <dt>Memory</dt><dd>${mb(h.row.mem)} free of ${mb(h.row.max_mem)}</dd><dt>Type and model</dt><dd>${h.type} ${h.model}</dd><dt>Resources</dt><dd>${h.resources.join(" ") || "–"}</dd>
      <dt>So since</dt><dd>${time(h.since)}</dd><dt>Fell silent</dt><dd>${h.failures} times</dd><dt>lava</dt><dd>${h.version}</dd></dl></section>
    ${h.gpus.length > 0 && html`<section class="card"><h2>GPUs${h.row.power !== null && html` <span class="soft">${watts(h.row.power)}</span>`}</h2><${Table} name="GPUs"><thead><tr><th class="n" scope="col">GPU</th><th scope="col">Model</th><th class="n" scope="col">Use</th><th class="n" scope="col">Memory</th><th class="n" scope="col">°C</th><th class="n" scope="col">W</th><th scope="col">Jobs</th><th scope="col">Health</th></tr></thead>
      <tbody>${h.gpus.map((g) => html`<tr key=${g.uuid}><th class="n" scope="row">${g.index}</th><td title=${g.uuid}>${g.model}</td><td class="n">${percent(g.util)}</td><td class="n">${mb(g.used)} / ${mb(g.memory)}</td><td class="n">${g.temperature ?? "–"}</td><td class="n">${g.power === null ? "–" : Math.round(g.power)}</td>
        <td>${g.jobs.map((id) => html`<a href=${jobPath(id)}>${id}</a> `)}</td><td>${g.closed ? `closed: ${g.closed}` : "ok"}</td></tr>`)}</tbody><//></section>`}
    ${h.bound.length > 0 && html`<section class="card"><h2>Cores</h2><${Table} name="Cores"><thead><tr><th scope="col">Job</th><th scope="col">Processors that its tasks are bound to</th></tr></thead>
      <tbody>${h.bound.map((b) => html`<tr key=${b.job}><th scope="row"><a href=${jobPath(b.job)}>${b.job}</a></th><td>${b.cpus}</td></tr>`)}</tbody><//></section>`}
    <section class="card"><h2>Jobs here</h2><${JobTable} jobs=${h.jobs} /></section>`}<//>`;
}
