// The frame of all pages: who is signed in, where one is, and the page for that.
import { html, render, useState, useEffect, ask, session, follow, useConnected, Failed, Title } from "./lib.js";
import { Cluster } from "./cluster.js";
import { Jobs, Submit } from "./jobs.js";
import { Job } from "./job.js";
import { Queues, Queue } from "./queues.js";
import { Hosts, Host } from "./hosts.js";
import { Use } from "./use.js";
import { Chart } from "./chart.js";
import { Admin } from "./admin.js";
import { Tokens } from "./tokens.js";

const PAGES = [
  ["", "Cluster", Cluster], ["jobs", "Jobs", Jobs], ["submit", "Submit", Submit], ["queues", "Queues", Queues],
  ["hosts", "Hosts", Hosts], ["chart", "Chart", Chart], ["use", "Use", Use], ["admin", "Health", Admin],
];
const LIVE = new Map([[null, "connecting"], [true, "live"], [false, "not connected"]]);
const OTHERS = { tokens: Tokens };
const OF_ONE = { jobs: Job, hosts: Host, queues: Queue };

// As it is written where it is no encoded text.
function decoded(text) { try { return decodeURIComponent(text); } catch { return text; } }

function place() {
  const [path, search = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [word = "", one = ""] = path.split("/");
  return { word, one: decoded(one), search: Object.fromEntries(new URLSearchParams(search)) };
}

function Page() {
  const [at, setAt] = useState({ ...place(), move: 0 });
  const live = useConnected();
  useEffect(() => { const moved = () => setAt((old) => ({ ...place(), move: old.move + 1 })); addEventListener("hashchange", moved); return () => removeEventListener("hashchange", moved); }, []);
  const [current, , OfAll] = PAGES.find(([word]) => word === at.word) || [null, "", OTHERS[at.word] || NoPage];
  const Shown = at.one && OF_ONE[at.word] ? OF_ONE[at.word] : OfAll;
  const out = async () => { await ask("/session", "DELETE").catch(() => null); location.reload(); };
  return html`<a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); document.querySelector("h1")?.focus(); }}>Skip to the content</a>
    <header class="top"><div>
      <strong>lava</strong><span class="soft">${session.cluster}</span>
      <nav aria-label="Pages"><ul>${PAGES.map(([word, text]) => html`<li><a href=${"#/" + word} aria-current=${word === current ? "page" : undefined}>${text}</a></li>`)}</ul></nav>
      <span class="who"><span class=${"live" + (live === false ? " off" : live ? "" : " asks")} role="status">${LIVE.get(live)}</span><a href="#/tokens" title="Your tokens" aria-current=${at.word === "tokens" ? "page" : undefined}>${session.user}</a><button onClick=${out}>Sign out</button></span>
    </div></header>
    <main id="main"><${Shown} key=${at.move} one=${at.one} search=${at.search} /></main>
    <footer class="soft">Times are those of ${Intl.DateTimeFormat().resolvedOptions().timeZone}.</footer>`;
}

const NoPage = () => html`<${Title} text="No such page" /><p class="card">There is no page <code>${location.hash}</code>. <a href="#/">The cluster</a> is the first one.</p>`;

const SignIn = () => html`<main><h1>lava</h1><div class="card"><h2>Sign in</h2>
  <p>Run this on a host of the cluster, and open the address that it prints:</p><pre tabindex="0">lava web</pre></div></main>`;

const root = document.getElementById("page");
ask("/session").then(
  (found) => { Object.assign(session, found); root.replaceChildren(); follow(); render(html`<${Page} />`, root); },
  (error) => { root.replaceChildren(); render(error.status === 401 ? html`<${SignIn} />` : html`<main><h1>lava</h1><${Failed} error=${error} /></main>`, root); });
