// The cluster's health: what is wrong, in words, and what to do; what happened to hosts, queues and masters.
import { html, useRecord, Shown, Table, Title, time, number, hostPath } from "./lib.js";

export function Admin() {
  const found = useRecord("/health", 15), users = useRecord("/users", 30);
  return html`<${Title} text="Health" /><${Shown} of=${found}>${(h) => html`<p>Master on ${h.master}${h.since ? ` since ${time(h.since)}` : ""}, number ${h.epoch}. ${h.is_admin ? "You are an administrator." : ""}</p>
    <section><h2>What is wrong</h2>${h.notices.length === 0 ? html`<p class="card">Nothing is wrong with the cluster.</p>`
      : h.notices.map((n) => html`<div class="card note"><b>${n.text}</b>${n.what_to_do && html`<br /><span class="soft">What to do: ${n.what_to_do}</span>`}</div>`)}</section>
    ${h.is_admin && html`<p>Hosts are opened and closed on <a href="#/hosts">their pages</a>, queues on <a href="#/queues">theirs</a>.</p>`}
    <section class="card"><h2>What happened in the last week</h2><ol class="story">${h.recent.map((line) => html`<li><time datetime=${new Date(line.at * 1000).toISOString()}>${time(line.at)}</time>${line.text}</li>`)}</ol></section>`}<//>
    <section class="card"><h2>Users <span class="soft">in slots</span></h2><${Shown} of=${users}>${(u) => u.users.length === 0 ? html`<p class="soft">Nobody has jobs.</p>` : html`<${Table} name="Users, in slots"><thead><tr><th scope="col">User</th><th class="n" scope="col">Waiting</th><th class="n" scope="col">Running</th><th class="n" scope="col">Suspended</th><th class="n" scope="col">Most slots</th></tr></thead>
      <tbody>${u.users.map((row) => html`<tr key=${row.name}><th scope="row"><a href=${`#/jobs?user=${encodeURIComponent(row.name)}`}>${row.name}</a></th><td class="n">${number(row.pend)}</td><td class="n">${number(row.run)}</td><td class="n">${number(row.susp)}</td><td class="n">${number(row.limit)}</td></tr>`)}</tbody><//>`}<//></section>`;
}
