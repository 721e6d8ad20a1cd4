// Tokens: which there are, making one for a program, calling them back; for administrators those of all.
import { html, useState, useRecord, ask, session, Shown, Table, Title, Failed, Action, time, query } from "./lib.js";

const KINDS = { api: "program", session: "browser", link: "link that signs in" };
const LIFE = [[1, "1 hour"], [24, "1 day"], [168, "7 days"]];

function Make({ done }) {
  const [name, setName] = useState(""), [hours, setHours] = useState(24), [made, setMade] = useState(null), [error, setError] = useState(null), [copied, setCopied] = useState(false);
  const send = async (event) => {
    event.preventDefault(); setError(null); setMade(null); setCopied(false);
    try { setMade(await ask("/tokens", "POST", { name, hours })); setName(""); done(); } catch (problem) { setError(problem); }
  };
  const copy = () => navigator.clipboard.writeText(made.token).then(() => setCopied(true), () => setCopied(false));
  return html`<form class="card" onSubmit=${send}><h2>A token for a program</h2>
    <p class="soft">It goes into the header <code>Authorization: Bearer …</code> of REST, or into <code>~/.lava/token</code> for lava_client. Whoever has it acts as you until it ends: keep it as a password.</p>
    <div class="bar"><label class="grow">What it is for<input maxlength="64" value=${name} onInput=${(e) => setName(e.target.value)} /></label>
      <label>It serves for<select value=${hours} onChange=${(e) => setHours(+e.target.value)}>${LIFE.map(([n, text]) => html`<option value=${n}>${text}</option>`)}</select></label><button>Make a token</button></div>
    ${error && html`<${Failed} error=${error} />`}
    <div role="status">${made && html`<p><b>Copy it now: it is not shown again.</b> It ends at ${time(made.ends)}.</p><pre tabindex="0" role="region" aria-label="The new token">${made.token}</pre>
      <p class="bar">${navigator.clipboard && html`<button type="button" onClick=${copy}>${copied ? "Copied" : "Copy"}</button>`}<button type="button" onClick=${() => setMade(null)}>I have it</button></p>`}</div></form>`;
}

export function Tokens() {
  const [user, setUser] = useState("");
  const found = useRecord("/tokens" + query({ user }), 30, () => false);
  const of = user === "all" ? "everybody" : user || session.user;
  const gone = (row) => (row && row.this ? location.reload() : found.load());
  const what = (row) => `${KINDS[row.kind] || row.kind}${row.name ? ` ${row.name}` : ""} of ${row.user}, made ${time(row.made)}`;
  return html`<${Title} text="Tokens" /><p>By a token a program or a browser acts as its user. One that is called back serves no more, at once.</p>
    ${session.is_admin && html`<form class="bar" onSubmit=${(e) => e.preventDefault()}><label>Whose<select value=${user} onChange=${(e) => setUser(e.target.value)}><option value="">mine</option><option value="all">of all users</option></select></label></form>`}
    <${Make} done=${found.load} />
    <section class="card"><h2>Tokens that have not ended</h2><${Shown} of=${found}>${(page) => html`<${Table} name=${`Tokens of ${of}`}><thead><tr>${user && html`<th scope="col">User</th>`}<th scope="col">For</th><th scope="col">What it is for</th><th scope="col">Made</th><th scope="col">On</th><th scope="col">Last used</th><th scope="col">Ends</th><th scope="col">Call back</th></tr></thead>
      <tbody>${page.tokens.map((row) => html`<tr key=${row.id}>${user && html`<td>${row.user}</td>`}<th scope="row">${KINDS[row.kind] || row.kind}${row.this && html` <b>(this one)</b>`}</th><td>${row.name || "–"}</td><td>${time(row.made)}</td><td>${row.host}</td><td>${row.used ? time(row.used) : "not known"}</td><td>${time(row.ends)}</td>
        <td><${Action} label="Call back" said=${`Call back: ${what(row)}`} bad method="DELETE" path=${`/tokens/${encodeURIComponent(row.id)}`} sure=${`No more serves the token for a ${what(row)}.${row.this ? " You are signed out with it." : ""}`} done=${() => gone(row)} /></td></tr>`)}</tbody><//>
      ${page.tokens.length > 0 && html`<div class="bar"><${Action} label="Call all back" bad method="DELETE" path=${"/tokens" + query({ user })} sure=${`Call back all tokens of ${of}, of browsers too? You are signed out with yours.`} done=${() => location.reload()} /></div>`}`}<//></section>`;
}
