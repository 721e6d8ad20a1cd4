// Queues, and one with its fair share and the sums that lead to a priority.
import { html, useRecord, Shown, Table, Title, Action, number, span } from "./lib.js";
import { QueueTable } from "./cluster.js";

export function Queues() {
  const found = useRecord("/queues", 10);
  return html`<${Title} text="Queues" /><${Shown} of=${found}>${(q) => html`<div class="card"><p class="soft">In slots.</p><${QueueTable} queues=${q.queues} /></div>`}<//>`;
}

export function Queue({ one }) {
  const found = useRecord(`/queues/${encodeURIComponent(one)}`, 10);
  const path = `/queues/${encodeURIComponent(one)}`;
  return html`<${Title} text=${`Queue ${one}`} /><${Shown} of=${found}>${(q) => html`<p>${q.row.description}</p>
    ${q.row.may_change && html`<div class="bar">
      ${q.row.status.startsWith("Open") ? html`<${Action} label="Close" path=${path + "/close"} sure="Let it take no more jobs?" done=${found.load} fields=${[{ name: "comment", label: "Comment" }]} />`
        : html`<${Action} label="Open" path=${path + "/open"} sure="Let it take jobs?" done=${found.load} />`}
      ${q.row.status.includes("Inact") ? html`<${Action} label="Activate" path=${path + "/activate"} sure="Let its jobs start?" done=${found.load} />`
        : html`<${Action} label="Inactivate" path=${path + "/inactivate"} sure="Start no more of its jobs?" done=${found.load} fields=${[{ name: "comment", label: "Comment" }]} />`}</div>`}
    <section class="card"><h2>Facts</h2><dl><dt>Status</dt><dd>${q.row.status}</dd><dt>Priority</dt><dd>${q.row.priority}</dd>
      <dt>Slots</dt><dd>${number(q.row.run)} running, ${number(q.row.pend)} waiting, ${number(q.row.susp)} suspended${q.row.limit ? `, at most ${number(q.row.limit)}` : ""}</dd>
      <dt>Users</dt><dd>${q.users.join(" ") || "all"}</dd><dt>Hosts</dt><dd>${q.hosts.join(" ") || "all"}</dd>${q.run_limit && html`<dt>Run limit</dt><dd>${span(q.run_limit)}</dd>`}</dl>
      <p><a href=${`#/jobs?queue=${encodeURIComponent(one)}`}>Its jobs</a></p></section>
    <section class="card"><h2>Fair share</h2>${q.shares.length === 0 ? html`<p class="soft">The queue has no fair share: jobs start in the order of their submission.</p>`
      : html`<p class="soft">A priority is the shares over what is used: CPU time, run time (of the past too, as it fades), slots and GPU time, each times its factor. The highest is served first, level by level.</p>
      <${Table} name="Fair share"><thead><tr><th scope="col">User or group</th><th class="n" scope="col">Shares</th><th class="n" scope="col">Priority</th><th class="n" scope="col">Slots</th><th class="n" scope="col">Reserved</th><th class="n" scope="col">CPU time</th><th class="n" scope="col">Run time</th><th class="n" scope="col">GPU time</th></tr></thead>
        <tbody>${q.shares.map((s) => html`<tr key=${s.path}><th scope="row">${s.path}</th><td class="n">${number(s.shares)}</td><td class="n">${s.priority.toFixed(3)}</td><td class="n">${number(s.slots)}</td><td class="n">${number(s.reserved)}</td><td class="n">${span(s.cpu_time)}</td><td class="n">${span(s.run_time)}</td><td class="n">${span(s.gpu_time)}</td></tr>`)}</tbody><//>`}</section>`}<//>`;
}
