// The parts of the overview beside the map: numbers at a glance, events, replicas, listings, churn.

import { $, bar, count, el, fill, link, number, percent, shape, stateOf, time } from "./dom.js";
import { seconds, spark, totals } from "./charts.js";

const KINDS = ["restored", "returned", "left", "joined", "changed", "skipped", "warning", "erased", "member"];
const LOUD = new Set(["skipped", "warning"]);
const EVENTS = 256;

function tile(title, value, below, options = {}) {
  return el("div", { class: options.alarm ? "tile alarm" : "tile" }, el("h2", { class: "soft" }, title), el("b", {}, value), el("span", { class: "soft" }, below), options.extra);
}

export function tiles(fleet, facts, hour, now) {
  const of = (word) => fleet.counts[fleet.codes[word]];
  const waiting = ["unrestored", "unreadable", "pending"].filter((word) => of(word)).map((word) => `${number(of(word))} ${word}`);
  const due = of("unrestored") + of("pending") + of("unreadable");
  const sum = hour && totals(hour, now);
  const paused = of("paused") ? `, ${number(of("paused"))} paused` : "";
  fill($("tiles"),
    tile("Share current", [percent(fleet.current + of("paused"), fleet.there), el("small", {}, "%")], `of ${count(fleet.there, "node")}`, { extra: hour && spark(hour, now) }),
    tile("Need attention", number(due), waiting.join(", ") || "nothing waits", { alarm: of("unrestored") + of("unreadable") > 0 }),
    tile("Absent", number(of("absent")), `${count(facts?.records ?? 0, "record")} kept${paused}`),
    tile("Restored this hour", number(sum?.restored ?? 0), sum?.restored ? `half within ${seconds(sum.half)}, slowest ${seconds(sum.slowest)}` : "no node came back bare"));
}

export class Events {
  #events = [];
  #drawn = "";

  constructor() {
    fill($("kind"), el("option", { value: "" }, "All kinds"), KINDS.map((kind) => el("option", { value: kind }, kind)));
    $("kind").addEventListener("change", () => this.draw());
    $("filter").addEventListener("input", () => this.draw());
  }

  // Events that were told before may be told better: the same node at the same time.
  add(events, anew) {
    if (anew) this.#events = [];
    for (const [sequence, at, kind, name, text] of events) {
      this.#events = this.#events.filter((one) => !(one.at === at && one.kind === kind && one.name === name));
      this.#events.push({ sequence, at, kind, name, text });
    }
    this.#events.sort((one, other) => other.at - one.at || other.sequence - one.sequence);
    this.#events.length = Math.min(this.#events.length, EVENTS);
    this.draw();
  }

  of(name) { return this.#events.filter((event) => event.name === name && event.kind !== "member"); }

  draw() {
    const [kind, text] = [$("kind").value, $("filter").value.trim().toLowerCase()];
    const shown = this.#events.filter((one) => (!kind || one.kind === kind) && (!text || `${one.name} ${one.text}`.toLowerCase().includes(text)));
    const drawn = JSON.stringify(shown.map((one) => one.sequence));
    if (drawn === this.#drawn) return;
    this.#drawn = drawn;
    if (!shown.length) fill($("log"), el("p", { class: "empty" }, this.#events.length ? "No event matches." : "Nothing happened since this replica started."));
    else fill($("log"), el("ol", {}, shown.map(event)));
  }
}

export function event(one) {
  return el("li", { class: "event" }, time(one.at), el("span", { class: LOUD.has(one.kind) ? "kind loud" : "kind" }, one.kind),
    el("div", {}, one.kind === "member" ? one.name : link(one.name), " ", el("span", { class: "soft" }, one.text)));
}

export function members(all, self, fleet) {
  if (!all?.length) return fill($("shares"), el("p", { class: "empty" }, "This replica is alone: it takes no share, and leaves none."));
  const total = Math.max(1, fleet.size);
  const policies = new Set(all.map((member) => member.policy).filter(Boolean));
  fill($("shares"), el("ul", {}, all.map((member) => el("li", { class: "row" },
    el("div", {}, el("span", { class: "name" }, member.name, member.name === self && el("span", { class: "tag" }, "this one"), policies.size > 1 && el("span", { class: "tag bad" }, `policy ${member.policy?.slice(0, 6) ?? "unknown"}`)),
      el("span", { class: "soft" }, member.share == null ? member.roles.join(", ") : `first for ${number(member.share)} of ${number(fleet.size)}`)),
    member.share != null && bar(member.share / total)))));
}

export function listings(all, lists) {
  if (!lists) return void ($("listings").hidden = true);
  $("listings").hidden = false;
  // A preview that is open stays as it is, unless its page changed.
  const key = JSON.stringify(all);
  if ($("pages").dataset.key === key) return;
  $("pages").dataset.key = key;
  if (!all?.length) return fill($("pages"), el("p", { class: "empty" }, "There are no listings."));
  const open = new Set([...$("pages").querySelectorAll("details[open]")].map((details) => details.dataset.path));
  fill($("pages"), el("ul", {}, all.map((one) => listing(one, open))));
}

function listing(one, open) {
  const path = `listings/${encodeURIComponent(one.namespace)}/${encodeURIComponent(one.name)}`;
  const name = `${one.namespace}/${one.name}`;
  const said = one.endpoints == null ? "no page yet" : `${count(one.endpoints, "endpoint")}, ${number(one.bytes)} bytes`;
  const preview = el("details", { "data-path": path, open: open.has(path) }, el("summary", {}, "Preview"));
  // Loaded when it is opened, and sandboxed: it is somebody else's HTML.
  const show = () => {
    if (preview.open && !preview.querySelector("iframe")) {
      preview.append(el("iframe", { src: path, title: `The page of ${name}`, sandbox: "", referrerpolicy: "no-referrer", loading: "lazy" }));
    }
  };
  preview.addEventListener("toggle", show);
  return el("li", { class: "row" },
    el("div", {}, el("span", { class: "name" }, one.endpoints == null ? name : el("a", { href: path, target: "_blank", rel: "noreferrer" }, name), one.trouble && el("span", { class: "tag bad" }, one.trouble[0])), el("span", { class: "soft" }, said)),
    one.trouble && el("p", { class: "soft" }, one.trouble[1]),
    one.endpoints != null && preview);
}

// Which nodes something keeps setting to and fro.
export function churners(all) {
  $("churn").hidden = !all?.length;
  if (!all?.length) return;
  const most = Math.max(...all.map(([, times]) => times));
  fill($("churners"), el("ul", {}, all.map(([name, times]) => el("li", { class: "row" }, el("div", {}, link(name), el("span", { class: "soft" }, count(times, "time"))), bar(times / most)))));
}

export function state(word, extra) {
  return el("span", { class: "state" }, shape(stateOf(word)), word, extra);
}
