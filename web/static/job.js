// A job: its story, where its ranks are, what it uses over time, its output, why it waits, and what to do with it. An array as a grid.
import { html, useState, useEffect, useRef, useRecord, useDark, useSeen, ask, session, Shown, Table, Title, Failed, State, Action, number, percent, size, span, time, jobPath, hostPath, queuePath } from "./lib.js";
import { Curves } from "./curves.js";
import { Where } from "./jobs.js";

const of = (id) => (event) => event.id === id || event.id.startsWith(id + "[");
const OVER = new Set(["DONE", "EXIT"]);

export function Job({ one }) {
  const job = useRecord(`/jobs/${encodeURIComponent(one)}`, 10, of(one));
  const array = useRecord(job.error && !one.includes("[") ? `/jobs/${encodeURIComponent(one)}/elements` : "", 10, of(one));
  if (array.value) return html`<${Elements} found=${array.value} load=${array.load} />`;
  // what is no job may be an array: nothing is said until that is known
  const known = job.error && !job.value && !one.includes("[") && !array.error ? array : job;
  return html`<${Title} text=${`Job ${one}`}>${job.value && html`<span class="soft">${job.value.row.name}</span>`}<//><${Shown} of=${known}>${(found) => html`<${Found} job=${found} load=${job.load} />`}<//>`;
}

function Actions({ id, state, load }) {
  const path = `/jobs/${encodeURIComponent(id)}`;
  const over = OVER.has(state);
  const held = ["PSUSP", "USUSP", "SSUSP"].includes(state);
  return html`<div class="bar">
    ${!over && html`<${Action} label="Kill" bad path=${path + "/kill"} sure=${`End job ${id}?`} done=${load} fields=${[{ name: "reason", label: "Reason (may be empty)" }]} />`}
    ${!over && !held && html`<${Action} label="Stop" path=${path + "/stop"} sure=${`Suspend job ${id}, or hold it while it waits?`} done=${load} />`}
    ${held && html`<${Action} label="Resume" path=${path + "/resume"} sure=${`Let job ${id} go on?`} done=${load} />`}
    ${state !== "PEND" && state !== "PSUSP" && html`<${Action} label="Requeue" path=${path + "/requeue"} body=${{ ended: over }} sure=${`End job ${id} and queue it again?`} done=${load} />`}
    ${!over && html`<${Action} label="Switch queue" path=${path + "/switch"} sure="To which queue?" done=${load} fields=${[{ name: "queue", label: "Queue", required: true }]} />`}
    ${state === "PEND" && html`<${Action} label="To the top" path=${path + "/move"} body=${{ top: true }} sure=${`Move job ${id} to the top of its queue?`} done=${load} />`}
    ${!over && html`<${Change} id=${id} load=${load} />`}
  </div>`;
}

function Change({ id, load }) {
  const box = useRef();
  const [name, setName] = useState("n"), [value, setValue] = useState(""), [error, setError] = useState(null);
  const send = async (event) => {
    event.preventDefault(); setError(null);
    try { await ask(`/jobs/${encodeURIComponent(id)}`, "PATCH", { options: { [name]: value } }); box.current.close(); load(); } catch (problem) { setError(problem); }
  };
  return html`<button onClick=${() => box.current.showModal()}>Change</button><dialog ref=${box} aria-label="Change"><form onSubmit=${send}><h2>Change job ${id}</h2>
    <p><label>Option<br /><select value=${name} onChange=${(e) => setName(e.target.value)}>
      ${[["n", "slots"], ["W", "run limit"], ["M", "memory limit"], ["R", "requirement"], ["gpu", "GPUs"], ["J", "name"], ["sp", "priority"], ["w", "dependency"], ["m", "hosts"], ["b", "begin"]].map(([k, t]) => html`<option value=${k}>${t} (-${k})</option>`)}</select></label></p>
    <p><label>Value<br /><input required value=${value} onInput=${(e) => setValue(e.target.value)} /></label></p>
    ${error && html`<${Failed} error=${error} />`}<p class="bar"><button>Change</button><button type="button" onClick=${() => box.current.close()}>Cancel</button></p></form></dialog>`;
}

function Found({ job, load }) {
  const row = job.row, now = Date.now() / 1000;
  const facts = [
    ["Name", row.name], ["User", row.user], ["Queue", html`<a href=${queuePath(row.queue)}>${row.queue}</a>`], ["Project", row.project],
    ["Slots", number(row.slots)], row.gpus && ["GPUs", row.gpus], ["Hosts", row.hosts.length ? html`<${Where} row=${row} />` : "none yet"],
    ["Submitted", `${time(row.submitted)} from ${job.from_host}`], row.started && ["Started", time(row.started)], row.ended && ["Ended", time(row.ended)],
    row.started && ["Ran", span((row.ended || now) - row.started) + (row.run_limit ? ` of at most ${span(row.run_limit)}` : "")],
    row.exit_code !== null && ["Exit code", row.exit_code], job.resreq && ["Requirement", job.resreq], job.dependency && ["Waits for", job.dependency],
    ["Folder", job.cwd], job.output && ["Output", job.output], job.error && ["Errors", job.error], job.application && ["Application", job.application],
    job.mem_limit && ["Memory limit", size(job.mem_limit)], job.description && ["Description", job.description],
    row.started && ["CPU time", span(job.cpu_time)], job.max_mem > 0 && ["Most memory", size(job.max_mem)],
    job.cpu_efficiency !== null && ["CPU efficiency", percent(job.cpu_efficiency) + " of its slots"], job.mem_efficiency !== null && ["Memory efficiency", percent(job.mem_efficiency) + " of what it reserves"],
  ].filter(Boolean);
  return html`<p><${State} of=${row.state} /> ${row.why}</p>
    ${job.may_change && html`<${Actions} id=${row.id} state=${row.state} load=${load} />`}
    ${["PEND", "PSUSP"].includes(row.state) && html`<${Why} id=${row.id} />`}
    ${row.state === "EXIT" && html`<${Told} title="How it ended" path=${`/jobs/${encodeURIComponent(row.id)}/explanation`} note />`}
    <div class="two"><section class="card"><h2>Facts</h2><dl>${facts.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl></section>
      <section class="card"><h2>Story</h2><ol class="story">${job.story.map((line) => html`<li><time datetime=${new Date(line.at * 1000).toISOString()}>${time(line.at)}</time>${line.text}</li>`)}</ol>
        <p class="soft">${Object.entries(job.seconds).map(([state, seconds]) => `${state} ${span(seconds)}`).join(", ")}</p></section></div>
    ${job.parts.length > 0 && html`<section class="card"><h2>On its hosts</h2><${Parts} parts=${job.parts} /></section>`}
    ${job.samples.length > 1 && html`<section class="card"><h2>Use over time</h2><${Plots} samples=${job.samples} /></section>`}
    ${row.started && html`<${Told} title="Asked for and used" path=${`/jobs/${encodeURIComponent(row.id)}/stats`} />`}
    ${row.started && html`<${Output} id=${row.id} over=${OVER.has(row.state)} />`}
    <section class="card"><h2>Command</h2><pre tabindex="0">${job.command}</pre></section>`;
}

// What a command says, without its first lines, which are those of the job and of its title.
function Told({ title, path, note }) {
  const said = useRecord(path, 60);
  return html`<section class=${note ? "card error" : "card"}><h2>${title}</h2><${Shown} of=${said}>${(text) => html`<pre class="said" tabindex="0" role="region" aria-label=${title}>${text.slice(text.indexOf("\n\n") + 2).replace(title + "\n", "").trimEnd()}</pre>`}<//></section>`;
}

function Why({ id }) {
  const why = useRecord(`/jobs/${encodeURIComponent(id)}/why`, 20, of(id));
  return html`<section class="card note"><h2>Why it waits</h2><${Shown} of=${why}>${(w) => html`<ul>${w.reasons.map((text) => html`<li>${text}</li>`)}</ul>
    ${w.position && html`<p>Place ${number(w.position)} of ${number(w.waiting)} in its queue.</p>`}
    ${w.starts_now && html`<p>Nothing keeps it now: it starts with the next cycle.</p>`}
    ${w.changes.length > 0 && html`<p>It would start now with (smallest change first):</p><ul>${w.changes.map((c) => html`<li>${c.text}</li>`)}</ul>`}
    ${(w.soonest || w.latest) && html`<p>${w.soonest === w.latest ? `It may start at ${time(w.soonest)}.` : `It may start from ${w.soonest ? time(w.soonest) : "not known"} to ${w.latest ? time(w.latest) : "not known"}.`}</p>`}`}<//></section>`;
}

const Parts = ({ parts }) => html`<${Table} name="On its hosts"><thead><tr><th scope="col">Host</th><th scope="col">Rank</th><th scope="col">Cores and GPUs</th><th scope="col">State</th><th class="n" scope="col">CPU</th><th class="n" scope="col">Memory</th><th class="n" scope="col">Most</th></tr></thead>
  <tbody>${parts.map((p) => html`<tr><th scope="row"><a href=${hostPath(p.host)}>${p.host}</a> <span class="soft">×${p.slots}</span></th><td></td><td>${p.cpus && `cores ${p.cpus} `}${p.gpus.length > 0 && `GPU ${p.gpus.join(",")}`}</td><td>${p.state}</td>
      <td class="n">${span(p.cpu)}</td><td class="n">${size(p.mem)}</td><td class="n">${size(p.max_mem)}</td></tr>
    ${p.tasks.filter((t) => t.rank >= 0).map((t) => html`<tr><td></td><th scope="row">${t.rank} <span class="soft">pid ${t.pid}</span></th><td>${t.gpu_util ? `GPU ${t.gpu_util} %` : ""}</td><td>${t.state}</td><td class="n">${span(t.cpu)}</td><td class="n">${size(t.mem)}</td><td></td></tr>`)}`)}</tbody><//>`;

const Plot = ({ title, at, values, unit }) => html`<${Curves} title=${title} at=${at} lines=${[[unit, values]]}
  said=${`${title}: now ${Math.round(values[values.length - 1] * 100) / 100} ${unit}, at most ${Math.round(Math.max(...values) * 100) / 100}`} />`;
function Plots({ samples }) {
  const at = samples.map((s) => s.at);
  return html`<div class="two"><${Plot} title="CPUs in use" at=${at} values=${samples.map((s) => s.cpus)} unit="CPUs" />
    <${Plot} title="Memory" at=${at} values=${samples.map((s) => s.mem / 1024)} unit="MB" />
    ${samples.some((s) => s.gpu >= 0) && html`<${Plot} title="GPUs" at=${at} values=${samples.map((s) => Math.max(0, s.gpu))} unit="%" />`}</div>`;
}

function Output({ id, over }) {
  const [text, setText] = useState(""), [state, setState] = useState("…"), [attempt, setTry] = useState(0), box = useRef(), whole = useRef(""), seen = useSeen();
  useEffect(() => {
    whole.current = "";
    const path = `/jobs/${encodeURIComponent(id)}/output`;
    if (over) { ask(path).then((found) => { setText(found); setState(found ? "" : "It wrote nothing that is kept here."); }, (error) => setState(error.message)); return undefined; }
    if (!seen) return undefined;
    const source = new EventSource("/api/v1" + path + "/events");
    let timer = 0;
    source.onopen = () => { whole.current = ""; };
    source.addEventListener("output", (event) => { whole.current = (whole.current + JSON.parse(event.data)).slice(-200000); setText(whole.current); setState(""); });
    source.addEventListener("end", () => { source.close(); setState("It has ended."); });
    source.addEventListener("problem", (event) => { source.close(); setState(JSON.parse(event.data)); });
    source.onerror = () => { if (source.readyState === 2) { setState("No output can be shown now; it is asked for again."); timer = setTimeout(() => setTry(attempt + 1), 5000); } };
    return () => { clearTimeout(timer); source.close(); };
  }, [id, over, attempt, over || seen]);
  useEffect(() => { if (box.current) box.current.scrollTop = box.current.scrollHeight; }, [text]);
  return html`<section class="card"><h2>Output</h2><pre ref=${box} tabindex="0" role="region" aria-label="Output">${text}</pre><p class=${state ? "soft" : "sr"} role="status">${state}</p></section>`;
}

const COLOURS = { RUN: "--run", PEND: "--idle", PSUSP: "--pend", WAIT: "--pend", SSUSP: "--susp", USUSP: "--susp", UNKWN: "--closed", ZOMBI: "--closed", DONE: "--use2", EXIT: "--bad" };
const WORDS = [["run", "RUN"], ["pend", "PEND"], ["psusp", "PSUSP"], ["ssusp", "SSUSP"], ["ususp", "USUSP"], ["unknown", "UNKWN"], ["done", "DONE"], ["exit", "EXIT"]];

function Elements({ found, load }) {
  const box = useRef(), [wanted, setWanted] = useState(""), dark = useDark();
  const last = found.runs.length ? found.runs[found.runs.length - 1][1] : 0;
  const first = found.runs.length ? found.runs[0][0] : 1;
  const cell = last - first > 20000 ? 5 : last - first > 2000 ? 8 : 14;
  const stateAt = (index) => (found.runs.find(([a, b]) => a <= index && index <= b) || [])[2];
  useEffect(() => {
    const canvas = box.current, css = getComputedStyle(document.documentElement);
    const width = Math.max(1, Math.floor((canvas.parentElement.clientWidth - 20) / cell));
    canvas.width = width * cell; canvas.height = Math.min(30000, Math.ceil((last - first + 1) / width) * cell);
    const draw = canvas.getContext("2d");
    for (const [a, b, state] of found.runs) {
      draw.fillStyle = css.getPropertyValue(COLOURS[state] || "--off");
      for (let index = a; index <= b; index += 1) { const n = index - first; draw.fillRect((n % width) * cell, Math.floor(n / width) * cell, cell - 1, cell - 1); }
    }
    canvas.onclick = (event) => { const index = first + Math.floor(event.offsetY / cell) * width + Math.floor(event.offsetX / cell); if (stateAt(index)) location.hash = jobPath(`${found.id}[${index}]`); };
    canvas.onmousemove = (event) => { const index = first + Math.floor(event.offsetY / cell) * width + Math.floor(event.offsetX / cell); canvas.title = stateAt(index) ? `${found.id}[${index}] ${stateAt(index)}` : ""; };
  }, [found, dark]);
  const total = WORDS.reduce((sum, [key]) => sum + found.counts[key], 0);
  const over = found.counts.done + found.counts.exit;
  const said = WORDS.filter(([key]) => found.counts[key]).map(([key, state]) => `${number(found.counts[key])} ${state}`).join(", ");
  const waits = found.counts.pend > 0 ? "PEND" : found.counts.psusp > 0 ? "PSUSP" : found.counts.run ? "RUN" : "DONE";
  return html`<${Title} text=${`Array ${found.id}`} /><p>${found.name} of ${found.user} in <a href=${queuePath(found.queue)}>${found.queue}</a>: ${number(over)} of ${number(total)} elements are over.${found.limit > 0 && ` At most ${found.limit} run at a time.`}</p>
    ${(found.user === session.user || session.is_admin) && over < total && html`<${Actions} id=${found.id} state=${waits} load=${load} />`}
    <section class="card"><h2>Elements</h2><div class="scroll" tabindex="0"><canvas ref=${box} role="img" aria-label=${`Elements by index: ${said}`}></canvas></div>
      <ul class="legend">${WORDS.filter(([key]) => found.counts[key]).map(([key, state]) => html`<li><i style=${{ background: `var(${COLOURS[state]})` }}></i>${state} ${number(found.counts[key])}</li>`)}</ul></section>
    <form class="bar" onSubmit=${(event) => { event.preventDefault(); location.hash = jobPath(`${found.id}[${wanted}]`); }}>
      <label>Element<input inputmode="numeric" pattern="[0-9]+" required value=${wanted} onInput=${(e) => setWanted(e.target.value)} /></label><button>Show</button>
      <a href=${`#/jobs?array=${found.id}`}>Elements as a list</a></form>`;
}
