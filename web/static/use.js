// What users, projects and queues held and used of slots and GPUs.
import { html, useState, useRecord, Shown, Table, Title, Meter, number, query, time } from "./lib.js";
import { Curves } from "./curves.js";

const DAY = 86400;
const hours = (value) => (value >= 100 ? number(Math.round(value)) : value.toFixed(2));

const SHOWN = 5, PARTS = { 1: 24, 7: 28, 30: 30, 90: 45 };

// Slot hours of those who held most, and of all others, in each part of the time.
function OverTime({ steps, names, days }) {
  const first = names.slice(0, SHOWN), other = names.length > SHOWN;
  const of = (step, name) => (step.rows.find((r) => r.name === name) || { slot_hours: 0 }).slot_hours;
  const lines = first.map((name) => [name, steps.map((step) => of(step, name))]);
  if (other) lines.push(["others", steps.map((step) => step.rows.filter((r) => !first.includes(r.name)).reduce((sum, r) => sum + r.slot_hours, 0))]);
  return html`<${Curves} high=${240} at=${steps.map((step) => step.end)} lines=${lines}
    said=${`Slot hours of jobs that ended, over ${days} days, of ${lines.map(([name]) => name).join(", ")}; the table below has the sums`} />`;
}

export function Use() {
  const [by, setBy] = useState("user"), [days, setDays] = useState(7), [now] = useState(Math.floor(Date.now() / 1000));
  const found = useRecord("/use" + query({ by, from: now - days * DAY, steps: PARTS[days] }), 60);
  return html`<${Title} text="Use" /><form class="bar"><label>By<select value=${by} onChange=${(e) => setBy(e.target.value)}><option>user</option><option>project</option><option>queue</option></select></label>
    <label>Jobs that ended in the last<select value=${days} onChange=${(e) => setDays(+e.target.value)}>${[[1, "day"], [7, "7 days"], [30, "30 days"], [90, "90 days"]].map(([n, text]) => html`<option value=${n}>${text}</option>`)}</select></label></form>
    <div class="card"><${Shown} of=${found}>${(page) => {
      const most = Math.max(...page.rows.map((r) => r.slot_hours), 0.001);
      const rows = [...page.rows].sort((a, b) => b.slot_hours - a.slot_hours);
      return html`${rows.length > 0 && page.steps.length > 1 && html`<h2>Slot hours of jobs, by when they ended</h2><${OverTime} steps=${page.steps} names=${rows.map((r) => r.name)} days=${days} />`}
        ${rows.length > 0 && html`<${Table} name="Use"><thead><tr><th scope="col">${by[0].toUpperCase() + by.slice(1)}</th><th class="n" scope="col">Jobs</th><th class="n" scope="col">Slot hours</th><th class="n" scope="col">CPU hours</th><th class="n" scope="col">Slots without CPU time</th><th class="n" scope="col">GPU hours</th><th class="n" scope="col">GPU hours used</th></tr></thead>
        <tbody>${rows.map((r) => html`<tr key=${r.name}><th scope="row">${r.name}</th><td class="n">${number(r.jobs)}</td><td class="n">${hours(r.slot_hours)}<${Meter} part=${r.slot_hours} whole=${most} /></td><td class="n">${hours(r.cpu_hours)}</td>
          <td class="n">${r.slot_hours > 0 ? `${Math.round(100 * r.slot_waste_hours / r.slot_hours)} %` : "–"}</td><td class="n">${hours(r.gpu_hours)}</td><td class="n">${hours(r.gpu_used_hours)}</td></tr>`)}</tbody><//>`}
        ${page.kept_since && html`<p class="soft">Jobs that ended before ${time(page.kept_since)} are no longer kept (LAVA_HISTORY_DAYS).</p>`}
        ${rows.length === 0 && html`<p class="soft">No job ended in that time.</p>`}`; }}<//></div>`;
}
