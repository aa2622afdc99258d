// One node: what is on it against what is recorded, read at this moment.

import { $, ago, count, el, fill, number, stateOf, when } from "./dom.js";
import { event, state } from "./panels.js";

const QUIET = new Set(["same", "remembered", "not kept"]);

export class NodePage {
  #name = null;
  #asked = 0;
  #events;

  constructor(events) { this.#events = events; }

  get name() { return this.#name; }

  open(name) {
    this.#name = name;
    fill($("node"), back(), el("div", { class: "title" }, el("h1", { tabindex: "-1" }, name)), el("p", { class: "soft", role: "status" }, "reading"));
    $("node").querySelector("h1").focus();
    return this.read();
  }

  close() { this.#name = null; }

  async read() {
    const name = this.#name;
    const asked = ++this.#asked;
    let answer;
    try {
      answer = await fetch(`page/node/${encodeURIComponent(name)}`);
    } catch {
      return this.#refuse(asked, "this replica does not answer");
    }
    if (!answer.ok) return this.#refuse(asked, await answer.text());
    const node = await answer.json();
    if (asked === this.#asked && this.#name === name) this.#draw(node);
  }

  #refuse(asked, why) {
    if (asked === this.#asked && this.#name) fill($("node"), back(), el("div", { class: "title" }, el("h1", {}, this.#name)), el("p", { class: "card", role: "status" }, why));
  }

  #draw({ name, line, live, record, labels, others, first }) {
    const now = Date.now();
    const focused = document.activeElement?.tagName === "H1";
    const rows = [
      ["State", line.why ? `${line.state}: ${line.why.replaceAll("_", " ")}` : `${line.state}: ${stateOf(line.state).says}`],
      line.pendingSeconds != null && ["Waiting for", count(line.pendingSeconds, "second")],
      line.failures > 0 && ["Failed in a row", number(line.failures)],
      first && ["First in line", first],
      ["Node", live ? [live.terminating ? "being deleted, created " : "created ", when(live.created, now)] : "not in the cluster"],
      live && ["Incarnation", el("span", { class: "mono" }, live.uid)],
      live && ["Given back", live.restored ? "yes, it bears the mark" : "not needed, or not yet"],
    ];
    const remembered = record?.broken ? [["Record", record.broken]] : record ? [
      ["State", [record.state, record.unproved ? ", its end is not proved" : "", record.paused ? ", paused" : ""]],
      ["Written", [when(record.captured, now), `, ${count(record.sequence, "time")} in all`]],
      record.deleted && ["Node left", when(record.deleted, now)],
      ["Incarnation", [el("span", { class: "mono" }, record.uid), live && live.uid !== record.uid ? " (an earlier one)" : ""]],
      ["Earlier states", record.previous.length ? record.previous.map((one) => `${count(one.labels, "label")} ${ago(one.at, now)}`).join("; ") : "none"],
    ] : [["Record", "there is none"]];
    const events = this.#events.of(name);
    fill($("node"), back(),
      el("div", { class: "title" }, el("h1", { tabindex: "-1" }, name), state(line.state)),
      el("div", { class: "columns" }, card("The node", facts(rows)), card("Its record", facts(remembered))),
      card(`Labels, live against record`, table(labels), kept(others)),
      events.length > 0 && card("Lately", el("ol", {}, events.slice(0, 20).map(event))));
    if (focused) $("node").querySelector("h1").focus();
  }
}

const back = () => el("a", { class: "crumb", href: "#/" }, "← All nodes");
const card = (title, ...children) => el("section", { class: "card" }, el("h2", {}, title), children);
const facts = (rows) => el("dl", { class: "facts" }, rows.filter(Boolean).map(([term, said]) => [el("dt", {}, term), el("dd", {}, said)]));

function table(labels) {
  if (!labels.length) return el("p", { class: "empty" }, "There are no labels.");
  const cell = (value) => el("td", { class: typeof value === "string" ? "mono" : "" }, value === true ? "present" : value ?? "–");
  const order = (label) => (label.how === "not kept" ? 2 : QUIET.has(label.how) ? 1 : 0);
  const rows = labels.toSorted((one, other) => order(one) - order(other) || (one.key < other.key ? -1 : 1));
  return el("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Labels" }, el("table", {},
    el("thead", {}, el("tr", {}, ["Label", "On the node", "In the record", ""].map((head, at) => (head ? el("th", { scope: "col" }, head) : el("td", {}, el("span", { class: "sr" }, "How they compare")))))),
    el("tbody", {}, rows.map(({ key, live, record, how }) => el("tr", { class: how === "not kept" ? "quiet" : QUIET.has(how) ? "" : "off" }, el("th", { scope: "row", class: "mono" }, key), cell(live), cell(record), el("td", {}, how))))));
}

function kept({ live, record }) {
  const side = (name, other) => other && (other.annotations || other.taints || other.cordoned) ? `${name}: ${count(other.annotations, "annotation")}, ${count(other.taints, "taint")}${other.cordoned ? ", cordoned" : ""}` : null;
  const words = [side("on the node", live), side("in the record", record)].filter(Boolean).join("; ");
  return words ? el("p", { class: "caption" }, `Also kept ${words}.`) : null;
}
