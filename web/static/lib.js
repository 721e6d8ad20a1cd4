// What all pages share: asking REST, the events of the cluster, times and sizes in words.
import { h, render } from "./vendor/preact.js";
import { useState, useEffect, useRef } from "./vendor/preact-hooks.js";
import htm from "./vendor/htm.js";

export { render, useState, useEffect, useRef };
export const html = htm.bind(h);

const ROOT = "/api/v1";
export const session = { user: "", csrf: "", queues: [], is_admin: false, cluster: "" };

export class Problem extends Error {
  constructor(status, detail) { super(detail); this.status = status; }
}

export async function ask(path, method = "GET", body = undefined, again = true) {
  const headers = {};
  if (method !== "GET") headers["X-CSRF-Token"] = session.csrf;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(ROOT + path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch { throw new Problem(0, "The page's server does not answer"); }
  if (answer.status === 204) return null;
  const text = await answer.text();
  if (!answer.ok) {
    let detail = text;
    try { detail = JSON.parse(text).detail; } catch { /* it was no JSON */ }
    // a page that was started again, or another session of this browser, has another token against forged requests
    if (answer.status === 403 && method !== "GET" && again) {
      const found = await ask("/session");
      if (found.user !== session.user) throw new Problem(403, `${found.user} is signed in now: load the page again`);
      if (found.csrf !== session.csrf) { Object.assign(session, found); return ask(path, method, body, false); }
    }
    throw new Problem(answer.status, detail || `status ${answer.status}`);
  }
  return (answer.headers.get("Content-Type") || "").includes("json") ? JSON.parse(text) : text;
}

// Events: one stream for all tabs of a browser, which opens six connections to a server at most; a tab that nobody sees has none.
// Whoever listens hears each News.
const listeners = new Set();
const watchers = new Set();
const AGAIN = 10000, NAME = "lava events";
let connected = null;  // not known yet
export function follow() {
  const tabs = new BroadcastChannel(NAME);
  let leads = false, end = () => {};
  const hear = ({ live, news }) => {
    const missed = live && !connected;
    if (live !== connected) { connected = live; watchers.forEach((tell) => tell(live)); }
    if (news || missed) listeners.forEach((one) => one(news || { events: [], more: 1 }));
  };
  const say = (what) => { hear(what); tabs.postMessage(what); };
  tabs.onmessage = ({ data }) => { if (!data.ask) hear(data); else if (leads) tabs.postMessage({ live: connected }); };
  const lead = (over) => new Promise((done) => {
    let source, timer = 0;
    const open = () => {
      source = new EventSource(ROOT + "/events");
      source.addEventListener("news", (event) => say({ live: true, news: JSON.parse(event.data) }));
      source.addEventListener("away", () => say({ live: false }));
      source.onopen = () => say({ live: true });
      // a browser does not come again by itself where it was refused: too many streams, or a proxy whose server is away
      source.onerror = () => { say({ live: false }); if (source.readyState === 2) timer = setTimeout(open, AGAIN); };
    };
    leads = true;
    over.addEventListener("abort", () => { leads = false; clearTimeout(timer); source.close(); done(); });
    open();
  });
  const begin = () => {
    const stop = new AbortController(), { signal } = stop;
    end = () => stop.abort();
    tabs.postMessage({ ask: true });
    if (navigator.locks) navigator.locks.request(NAME, { signal }, () => lead(signal)).catch(() => { /* it is seen no more */ }); else lead(signal);
  };
  document.addEventListener("visibilitychange", () => { end(); if (!document.hidden) begin(); });
  if (!document.hidden) begin();
}
// Whether somebody sees this tab.
export function useSeen() {
  const [seen, set] = useState(!document.hidden);
  useEffect(() => { const tell = () => set(!document.hidden); tell(); document.addEventListener("visibilitychange", tell); return () => document.removeEventListener("visibilitychange", tell); }, []);
  return seen;
}
export function useConnected() {
  const [is, set] = useState(connected);
  // it may have changed between the first look and now
  useEffect(() => { watchers.add(set); set(connected); return () => watchers.delete(set); }, []);
  return is;
}
// Whether the browser is dark, for what is drawn in colours that styles cannot change afterwards.
export function useDark() {
  const wish = matchMedia("(prefers-color-scheme: dark)"), [dark, set] = useState(wish.matches);
  useEffect(() => { const tell = () => set(wish.matches); tell(); wish.addEventListener("change", tell); return () => wish.removeEventListener("change", tell); }, []);
  return dark;
}
export function useNews(hear) {
  const last = useRef(hear);
  last.current = hear;
  useEffect(() => { const one = (news) => last.current(news); listeners.add(one); return () => listeners.delete(one); }, []);
}

// A record, read again when something happens (at most every 2 s) and every `every` seconds while the page is seen.
export function useRecord(path, every = 10, matters = () => true) {
  const [state, set] = useState({ value: null, error: null, path });
  const timer = useRef(0);
  const current = useRef(path);
  current.current = path;
  const load = () => {
    if (!path) return;
    ask(path).then(
      (value) => current.current === path && set({ value, error: null, path }),
      (error) => current.current === path && set((old) => ({ value: old.path === path ? old.value : null, error, path })));
  };
  useEffect(() => {
    load();
    const look = () => { if (!document.hidden) load(); }, beat = setInterval(look, every * 1000);
    document.addEventListener("visibilitychange", look);
    return () => { clearInterval(beat); document.removeEventListener("visibilitychange", look); clearTimeout(timer.current); timer.current = 0; };
  }, [path]);
  useNews((news) => {
    if (document.hidden || timer.current || !(news.more || news.events.some(matters))) return;
    timer.current = setTimeout(() => { timer.current = 0; load(); }, 1500);
  });
  return state.path === path ? { ...state, load } : { value: null, error: null, load };
}

export function Shown({ of, children }) {
  if (of.error && !of.value) return html`<${Failed} error=${of.error} />`;
  if (!of.value) return html`<p class="loading" role="status">Loading …</p>`;
  return html`${of.error && html`<${Failed} error=${of.error} />`}${children(of.value)}`;
}
export const Failed = ({ error }) => html`<p class="card error" role="alert">${error.message}</p>`;

export function Title({ text, children }) {
  const ref = useRef();
  useEffect(() => { document.title = `${text} · lava`; if (ref.current) ref.current.focus({ preventScroll: true }); }, [text]);
  return html`<h1 tabindex="-1" ref=${ref}>${`${text} `}${children}</h1>`;
}

const two = (n) => String(n).padStart(2, "0");
export function time(at) {
  if (!at) return "–";
  const d = new Date(at * 1000), now = new Date();
  const clock = `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
  return d.toDateString() === now.toDateString() ? clock : `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${clock}`;
}
export function span(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor(s % 3600 / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor(s % 86400 / 3600)} h`;
}
export function size(kb) {
  if (!kb) return "–";
  if (kb < 1024) return `${Math.round(kb)} KB`;
  if (kb < 1024 * 1024) return `${(kb / 1024).toFixed(kb < 10240 ? 1 : 0)} MB`;
  return `${(kb / 1048576).toFixed(1)} GB`;
}
export const number = (n) => (n === null || n === undefined ? "–" : n.toLocaleString("en"));
export const percent = (n) => (n === null || n === undefined ? "–" : `${Math.round(n)} %`);
export const jobPath = (id) => `#/jobs/${encodeURIComponent(id)}`;
export const hostPath = (name) => `#/hosts/${encodeURIComponent(name)}`;
export const queuePath = (name) => `#/queues/${encodeURIComponent(name)}`;
export const State = ({ of }) => html`<span class="state ${of}">${of}</span>`;
// A table that scrolls sideways where it is too wide; its name is read aloud, and seen as the heading above it.
export const Table = ({ name, children }) => html`<div class="wide" tabindex="0" role="region" aria-label=${name}><table><caption class="sr">${name}</caption>${children}</table></div>`;
export const Meter = ({ part, whole }) => html`<div class="meter" aria-hidden="true"><i style=${{ width: `${whole > 0 ? Math.min(100, 100 * part / whole) : 0}%` }}></i></div>`;
export const query = (values) => {
  const found = Object.entries(values).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return found.length ? "?" + new URLSearchParams(found) : "";
};

// A button that asks before it changes something, and says what became of it.
export function Action({ label, said, path, method = "POST", body, bad, sure, done, fields = [] }) {
  const box = useRef();
  const [why, setWhy] = useState("");
  const [busy, setBusy] = useState(false);
  const [values, setValues] = useState({});
  const carry = async () => {
    setBusy(true); setWhy("");
    try {
      await ask(path, method, method === "DELETE" ? undefined : { ...(body || {}), ...values });
      box.current.close();
      if (done) done();
    } catch (error) { setWhy(error.message); }
    setBusy(false);
  };
  return html`<button type="button" class=${bad ? "bad" : ""} aria-label=${said} onClick=${() => { setWhy(""); box.current.showModal(); }}>${label}</button>
    <dialog ref=${box} aria-label=${label}>
      <form method="dialog" onSubmit=${(event) => { event.preventDefault(); carry(); }}>
        <h2>${label}</h2><p>${sure}</p>
        ${fields.map((field) => html`<p><label>${field.label}<br /><input value=${values[field.name] || ""} required=${field.required}
          onInput=${(event) => setValues({ ...values, [field.name]: event.target.value })} /></label></p>`)}
        ${why && html`<p class="card error" role="alert">${why}</p>`}
        <p class="bar"><button class=${bad ? "bad" : ""} disabled=${busy}>${label}</button>
        <button type="button" onClick=${() => box.current.close()}>Cancel</button></p>
      </form>
    </dialog>`;
}
