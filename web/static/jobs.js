// Jobs: filtered, sorted, a page at a time; and the form that submits one.
import { html, useState, useEffect, useRecord, ask, session, Shown, Table, Title, Failed, State, number, time, span, jobPath, hostPath, query } from "./lib.js";

const STATES = ["", "live", "waiting", "running", "finished", "PEND", "PSUSP", "WAIT", "RUN", "USUSP", "SSUSP", "UNKWN", "DONE", "EXIT"];
const LIVE_SORTS = new Set(["live", "waiting", "running", "PEND", "PSUSP", "WAIT", "RUN", "USUSP", "SSUSP", "UNKWN"]);

export const Where = ({ row }) => html`${row.hosts.map((h, n) => html`${n > 0 && " "}<a href=${hostPath(h.host)}>${h.host}</a>${h.slots > 1 && html`<span class="soft">×${h.slots}</span>`}`)}
  ${row.host_count > row.hosts.length && ` and ${row.host_count - row.hosts.length} more`}`;
const counts = (e) => [["run", "running"], ["pend", "waiting"], ["psusp", "held"], ["ssusp", "suspended"], ["ususp", "stopped"], ["unknown", "unknown"], ["done", "done"], ["exit", "failed"]]
  .filter(([key]) => e[key]).map(([key, word]) => `${number(e[key])} ${word}`).join(", ");

export function JobTable({ jobs, sort, setSort }) {
  const now = Date.now() / 1000;
  const Head = ({ name, text, n }) => html`<th scope="col" class=${n ? "n" : ""} aria-sort=${sort === name ? "ascending" : sort === "-" + name ? "descending" : undefined}>
    ${setSort ? html`<button onClick=${() => setSort(sort === name ? "-" + name : name)}>${text}${sort === name ? " ↑" : sort === "-" + name ? " ↓" : ""}</button>` : text}</th>`;
  return html`<${Table} name="Jobs">
    <thead><tr><${Head} name="id" text="Job" /><${Head} name="state" text="State" /><${Head} name="name" text="Name" /><${Head} name="user" text="User" /><${Head} name="queue" text="Queue" />
      <${Head} name="slots" text="Slots" n /><th class="n" scope="col">GPUs</th><th scope="col">Hosts</th><${Head} name="submitted" text="Submitted" /><th scope="col">Ran</th><th scope="col">Why</th></tr></thead>
    <tbody>${jobs.map((row) => html`<tr key=${row.id}><th scope="row"><a href=${jobPath(row.id)}>${row.id}</a></th><td class="one"><${State} of=${row.state} />${row.exit_code ? html` <span class="soft">${row.exit_code}</span>` : ""}</td><td class="cut" title=${row.name}>${row.name}</td><td>${row.user}</td><td>${row.queue}</td>
      <td class="n">${number(row.slots)}</td><td class="n">${row.gpus || "–"}</td><td class="cut">${row.elements ? html`<span class="soft">${counts(row.elements)}</span>` : html`<${Where} row=${row} />`}</td><td class="one">${time(row.submitted)}</td>
      <td class="one">${row.started ? span((row.ended || now) - row.started) : "–"}</td><td class="cut" title=${row.why}>${row.why}</td></tr>`)}</tbody><//>
    ${jobs.length === 0 && html`<p class="soft">No job fits.</p>`}`;
}

export function Jobs({ search }) {
  const [wanted, setWanted] = useState({ state: "", user: "", queue: "", project: "", search: "", array: "", sort: "-id", ...search });
  const [typed, setTyped] = useState(wanted);
  const [cursors, setCursors] = useState([""]);
  useEffect(() => { const wait = setTimeout(() => { setWanted(typed); }, 350); return () => clearTimeout(wait); }, [typed]);
  useEffect(() => {
    setCursors([""]);
    const { sort, ...rest } = wanted;
    history.replaceState(null, "", "#/jobs" + query({ ...rest, sort: sort === "-id" ? "" : sort }));
  }, [wanted]);
  const cursor = cursors[cursors.length - 1];
  const found = useRecord("/jobs" + query({ ...wanted, cursor, limit: 50 }), 10);
  const set = (name) => (event) => setTyped({ ...typed, [name]: event.target.value });
  const setSort = (sort) => {
    const state = sort.replace("-", "") === "id" || LIVE_SORTS.has(typed.state) ? typed.state : "live";
    setTyped({ ...typed, sort, state }); setWanted({ ...wanted, sort, state });
  };
  const pager = (page) => html`<div class="bar"><button disabled=${cursors.length < 2} onClick=${() => setCursors(cursors.slice(0, -1))}>Page before</button>
    <span class="soft">page ${cursors.length}</span><button disabled=${!page.next} onClick=${() => setCursors([...cursors, page.next])}>Next page</button></div>`;
  return html`<${Title} text="Jobs" />
    <form class="bar" role="search" onSubmit=${(event) => event.preventDefault()}>
      <label class="grow">Search: name, id, user, queue, project or host<input type="search" value=${typed.search} onInput=${set("search")} /></label>
      <label>State<select value=${typed.state} onChange=${set("state")}>${STATES.map((s) => html`<option value=${s}>${s || "all"}</option>`)}</select></label>
      <label>User<input value=${typed.user} onInput=${set("user")} /></label>
      <label>Queue<input value=${typed.queue} onInput=${set("queue")} /></label>
      <label>Project<input value=${typed.project} onInput=${set("project")} /></label>
      <button type="button" onClick=${() => setTyped({ ...typed, user: session.user, search: "", queue: "", project: "", state: "", array: "" })}>Mine</button>
      <button type="button" onClick=${() => setTyped({ ...typed, user: "", search: "", queue: "", project: "", state: "", array: "" })}>All</button>
    </form>
    ${wanted.array && html`<p>Elements of array <a href=${jobPath(wanted.array)}>${wanted.array}</a></p>`}
    <div class="card"><${Shown} of=${found}>${(page) => html`<${JobTable} jobs=${page.jobs} sort=${wanted.sort} setSort=${setSort} />${pager(page)}`}<//></div>`;
}

export function Submit() {
  const [values, setValues] = useState({ command: "", J: "", q: "", n: "1", gpu: "", W: "", M: "", o: "", cwd: "" });
  const [made, setMade] = useState(null);
  const [error, setError] = useState(null);
  const set = (name) => (event) => setValues({ ...values, [name]: event.target.value });
  const send = async (event) => {
    event.preventDefault(); setError(null); setMade(null);
    const { command, cwd, ...options } = values;
    const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value.trim()));
    try {
      const script = command.includes("\n") ? { command: command.split("\n").find((line) => line.trim() && !line.startsWith("#")) || "script", script: command } : { command };
      setMade(await ask("/jobs", "POST", { ...script, cwd, options: given }));
    } catch (problem) { setError(problem); }
  };
  const Field = ({ name, text, ...more }) => html`<label>${text}<input value=${values[name]} onInput=${set(name)} ...${more} /></label>`;
  return html`<${Title} text="Submit a job" /><form class="card" onSubmit=${send}>
    <p><label class="soft">Command, or a whole script<br /><textarea rows="6" cols="80" style=${{ width: "100%" }} required value=${values.command} onInput=${set("command")}></textarea></label></p>
    <div class="bar">${Field({ name: "J", text: "Name" })}
      <label>Queue<select value=${values.q} onChange=${set("q")}><option value="">the usual one</option>${session.queues.map((q) => html`<option>${q}</option>`)}</select></label>
      ${Field({ name: "n", text: "Slots" })}${Field({ name: "gpu", text: "GPUs (num=1)" })}${Field({ name: "W", text: "Run limit (h:min)" })}
      ${Field({ name: "M", text: "Memory limit (4GB)" })}${Field({ name: "o", text: "Output file (out.%J)" })}${Field({ name: "cwd", text: "Folder (home)" })}</div>
    <button>Submit</button>
    ${error && html`<${Failed} error=${error} />`}
    ${made && html`<p role="status">Job <a href=${jobPath(made.id)}>${made.id}</a> is submitted to queue ${made.queue}. ${made.notices.join(" ")}</p>`}
  </form>`;
}
