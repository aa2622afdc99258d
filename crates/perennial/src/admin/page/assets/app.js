// Follows the stream and keeps the page in step with it. Everything shown is made from what the stream said.

import { $, STATES, count, el, fill, number, shape } from "./dom.js";
import { latency, restores } from "./charts.js";
import { Fleet } from "./fleet.js";
import { Heat } from "./map.js";
import { NodePage } from "./node.js";
import { Events, churners, listings, members, tiles } from "./panels.js";

const ROWS = innerWidth < 760 ? 12 : 48;
// The stream says something every few seconds. Silence for this long means that it is broken.
const SILENCE = 20_000;

const fleet = new Fleet();
fleet.codes = Object.fromEntries(STATES.map((state, code) => [state.word, code]));
const events = new Events();
const node = new NodePage(events);
const said = { hello: null, facts: null, hour: null, day: null, members: null, listings: null };
const chosen = new Set();
let rows = ROWS;
let ahead = 0;
const now = () => Date.now() + ahead;

/* ---- the map, its legend and the list beside it ---- */

const chips = STATES.map((state, code) => {
  const amount = el("span", { class: "soft" }, "0");
  const button = el("button", { class: "chip", type: "button", "aria-pressed": "false", title: state.says, onclick: () => choose(code) }, shape(state), state.word, amount);
  return { button, amount, item: el("li", { "data-state": state.word }, button) };
});
fill($("legend"), [6, 2, 0, 4, 3, 1, 5].map((code) => chips[code].item));

const heat = new Heat($("canvas"), $("tip"), fleet, () => chips.map((chip) => chip.button.firstChild), (from, to) => {
  if (to - from === 1) location.hash = `#/node/${encodeURIComponent(fleet.names[from])}`;
  else look(common(fleet.names[from], fleet.names[to - 1]));
});

function common(one, other) {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at++;
  return one.slice(0, at);
}

function choose(code) {
  if (!chosen.delete(code)) chosen.add(code);
  chips[code].button.setAttribute("aria-pressed", String(chosen.has(code)));
  seek();
}

function look(text) {
  $("search").value = text;
  seek();
}

function seek() {
  rows = ROWS;
  fleet.seek($("search").value, chosen);
  heat.draw();
  list();
}

function list() {
  const shown = [];
  let more = false;
  for (const at of fleet.worst()) {
    if (shown.length === rows) { more = true; break; }
    shown.push(at);
  }
  const total = fleet.searching ? fleet.found : fleet.size - fleet.current - fleet.counts[fleet.codes.absent];
  $("found").textContent = fleet.searching ? (total ? `${count(total, "node")} found` : "No node is found") : total ? `${count(total, "node")} to look at` : fleet.size ? "Every node that is there is current" : "No nodes yet";
  // Whoever is on a node of the list, by keyboard, stays on it when the list is made anew.
  const on = $("nodes").contains(document.activeElement) && document.activeElement.getAttribute("href");
  fill($("nodes"), shown.map((at) => {
    const state = STATES[fleet.cells[at]];
    return el("li", {}, el("a", { href: `#/node/${encodeURIComponent(fleet.names[at])}` }, shape(state), el("span", { class: "name" }, fleet.names[at]), el("span", { class: "soft" }, state.word)));
  }));
  $("nodes").hidden = !shown.length;
  if (on) [...$("nodes").querySelectorAll("a")].find((link) => link.getAttribute("href") === on)?.focus({ preventScroll: true });
  $("more").hidden = !more;
  $("more").textContent = `Show ${number(Math.min(ROWS * 4, total - shown.length))} more`;
}

$("search").addEventListener("input", () => requestAnimationFrame(seek));
$("more").addEventListener("click", () => { rows += ROWS * 4; list(); });

/* ---- drawing what the stream said ---- */

function drawFleet() {
  heat.draw();
  for (const [code, { button, amount, item }] of chips.entries()) {
    amount.textContent = number(fleet.counts[code]);
    item.hidden = code === fleet.codes.unknown && !fleet.counts[code];
    button.disabled = !fleet.counts[code] && !chosen.has(code);
  }
  const others = STATES.filter((state, code) => state.word !== "current" && fleet.counts[code]).map((state) => `${number(fleet.counts[fleet.codes[state.word]])} ${state.word}`);
  $("summary").textContent = `${count(fleet.size, "node")}: ${number(fleet.current)} current${others.length ? `, ${others.join(", ")}` : ""}.`;
  $("scale").textContent = heat.group > 1 ? `A square is ${heat.group} nodes; what is wrong with one of them shows.` : "A square is a node; the order is that of the names.";
  list();
}

function drawRest() {
  const { hello, facts, hour } = said;
  tiles(fleet, facts, hour, now());
  if (said.members || hello) members(said.members, hello?.member, fleet);
  listings(said.listings, hello?.lists);
  churners(facts?.churners);
  drawRestores();
  const words = [];
  if (hello && !hello.keeps) words.push("This replica keeps no nodes: it publishes listings.");
  if (hello?.dryRun) words.push("Dry run: nothing is written.");
  if (facts?.silent) words.push("The keeper does not answer; what is shown may be old.");
  else if (facts && !facts.synced) words.push("The keeper is coming into step with the cluster.");
  if (facts?.brake) words.push("The brake is on: nothing is erased until somebody confirms.");
  $("notice").hidden = !words.length;
  $("notice").textContent = words.join(" ");
  for (const id of ["fleet", "restores", "events", "tiles"]) $(id).hidden = hello ? !hello.keeps : false;
}

function drawRestores() {
  const span = document.querySelector("[name=span]:checked").value;
  if (!said[span]) return;
  restores($("chart"), said[span], now(), span === "hour" ? "In the last hour" : "In the last day");
  latency($("latency"), said[span], now());
}
$("span").addEventListener("change", drawRestores);

function greet(hello) {
  said.hello = hello;
  $("where").textContent = `${hello.namespace}${hello.installation && hello.installation !== hello.namespace ? ` / ${hello.installation}` : ""} · seen by ${hello.member}`;
  $("foot").textContent = `Perennial ${hello.version}. Read-only. ${hello.values ? "Values of labels are shown." : "Values of labels are hidden."}`;
}

/* ---- the stream ---- */

let stream = null;
let heard = 0;
let tries = 0;
let anew = true;

function status(text, on) {
  if ($("live").textContent !== text) $("live").textContent = text;
  $("live").classList.toggle("on", on);
}

function connect() {
  if (stream || document.hidden) return;
  anew = true;
  heard = Date.now();
  stream = new EventSource("page/stream");
  const on = (kind, take) => stream.addEventListener(kind, (message) => { heard = Date.now(); take(JSON.parse(message.data)); });
  on("hello", greet);
  on("fleet", (all) => { fleet.load(all); drawFleet(); });
  on("news", (news) => {
    tries = 0;
    status("live", true);
    ahead = news.now - Date.now();
    if (news.changes) { fleet.change(news.changes); drawFleet(); }
    for (const part of ["facts", "hour", "day", "members", "listings"]) if (part in news) said[part] = news[part];
    if (news.events || anew) events.add(news.events ?? [], anew);
    anew = false;
    drawRest();
    if (node.name && (touches(news.changes) || news.events?.some((event) => event[3] === node.name))) again();
  });
  stream.addEventListener("error", lost);
}

const touches = (changes) => Object.values(changes ?? {}).some((names) => names.includes(node.name));

// The node's page is read again when something happened to it, once things have calmed down.
let later = null;
function again() {
  clearTimeout(later);
  later = setTimeout(() => node.name && node.read(), 500);
}

function lost() {
  stream?.close();
  stream = null;
  if (document.hidden) return;
  // A stream ends now and then, and the next one begins; only what lasts is worth a word.
  if (tries++ > 0) status("not connected, trying again", false);
  setTimeout(connect, Math.min(10_000, 300 * 2 ** tries));
}

setInterval(() => { if (stream && Date.now() - heard > SILENCE) lost(); }, 5000);
setInterval(() => { if (stream && said.hour) drawRest(); }, 30_000);
document.addEventListener("visibilitychange", () => {
  if (document.hidden) { stream?.close(); stream = null; } else connect();
});

/* ---- which page, which theme, which keys ---- */

let scrolled = 0;
function route() {
  const [, name] = location.hash.match(/^#\/node\/(.+)$/) ?? [];
  if (location.hash === "#main") return;
  const wasOpen = node.name;
  if (name && !wasOpen) scrolled = scrollY;
  $("overview").hidden = Boolean(name);
  $("node").hidden = !name;
  document.title = name ? `${decodeURIComponent(name)} · Perennial` : "Perennial";
  if (name) { scrollTo(0, 0); node.open(decodeURIComponent(name)); return; }
  node.close();
  heat.draw();
  if (wasOpen) { scrollTo(0, scrolled); $("main").focus({ preventScroll: true }); }
}
addEventListener("hashchange", route);

const THEMES = ["auto", "light", "dark"];
function theme(name) {
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  $("theme").textContent = `Theme: ${name}`;
  heat.draw();
}
function remembered() {
  try { return THEMES.includes(localStorage.theme) ? localStorage.theme : "auto"; } catch { return "auto"; }
}
$("theme").addEventListener("click", () => {
  const next = THEMES[(THEMES.indexOf($("theme").textContent.slice(7)) + 1) % THEMES.length];
  try { localStorage.theme = next; } catch { /* It is forgotten then. */ }
  theme(next);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => heat.draw());

addEventListener("keydown", (event) => {
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    // At once: what is typed next is to be found in the field.
    if (node.name) { location.hash = "#/"; route(); }
    $("search").focus();
  } else if (event.key === "Escape" && node.name) location.hash = "#/";
  else if (event.key === "Escape" && event.target === $("search")) look("");
});

theme(remembered());
drawFleet();
drawRest();
route();
connect();
