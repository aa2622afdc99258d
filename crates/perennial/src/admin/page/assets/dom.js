// Small hands: elements made without HTML, so that no name of a node can ever be one; numbers and times for people.

export const $ = (id) => document.getElementById(id);

const SVG = "http://www.w3.org/2000/svg";

function make(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children.flat(Infinity).filter((child) => child != null && child !== false));
  return node;
}

export const el = (tag, attributes, ...children) => make(document.createElement(tag), attributes, children);
export const svg = (tag, attributes, ...children) => make(document.createElementNS(SVG, tag), attributes, children);

export const fill = (node, ...children) => node.replaceChildren(...children.flat(Infinity).filter((child) => child != null && child !== false));

// A bar as long as its share. The style is set by script, which the content policy allows; an attribute it would not.
export function bar(share) {
  const inner = el("i");
  inner.style.width = `${(100 * Math.max(0, Math.min(1, share))).toFixed(2)}%`;
  return el("div", { class: "bar", "aria-hidden": "true" }, inner);
}

const whole = new Intl.NumberFormat("en");
export const number = (value) => whole.format(value);
export const count = (value, one, many = `${one}s`) => `${number(value)} ${value === 1 ? one : many}`;

// Never rounded up: 100 % is said only of all.
export function percent(part, all) {
  if (all === 0 || part === all) return "100";
  const digits = all > 2000 ? 3 : all > 200 ? 2 : 1;
  return (Math.floor((100 * part / all) * 10 ** digits) / 10 ** digits).toFixed(digits);
}

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const full = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
export const time = (millis) => el("time", { datetime: new Date(millis).toISOString(), title: full.format(millis) }, clock.format(millis));
export const hour = (millis) => clock.format(millis).slice(0, 5);

export function ago(millis, now) {
  const seconds = Math.max(0, Math.round((now - millis) / 1000));
  for (const [length, word] of [[86400, "day"], [3600, "hour"], [60, "minute"]]) {
    if (seconds >= length) return `${count(Math.floor(seconds / length), word)} ago`;
  }
  return seconds < 5 ? "just now" : `${seconds} seconds ago`;
}

export const when = (millis, now) => [ago(millis, now), el("span", { class: "soft" }, ` · ${full.format(millis)}`)];

export const link = (name) => el("a", { href: `#/node/${encodeURIComponent(name)}` }, name);

// The states: a letter on the wire, a word, a colour by class, and a shape within a square of 12. Worst first.
export const STATES = [
  { letter: "u", word: "unrestored", path: "M6 .5 12 11.5H0z", says: "back, and waits for its own" },
  { letter: "x", word: "unreadable", path: "M2 0 6 4 10 0l2 2-4 4 4 4-2 2-4-4-4 4-2-2 4-4-4-4z", says: "its record cannot be read by this binary" },
  { letter: "p", word: "pending", path: "M6 0l6 6-6 6-6-6z", says: "node and record do not agree yet" },
  { letter: "z", word: "paused", path: "M1.5 1h3.5v10H1.5zM7 1h3.5v10H7z", says: "paused by a person" },
  { letter: "a", word: "absent", path: "M1 1h10v10H1z", hollow: true, says: "away; its record waits for it" },
  { letter: "?", word: "unknown", path: "M4.5 4.5h3v3h-3z", says: "not known yet" },
  { letter: "c", word: "current", path: "M1 0h10a1 1 0 0 1 1 1v10a1 1 0 0 1-1 1H1a1 1 0 0 1-1-1V1a1 1 0 0 1 1-1z", says: "its record is up to date" },
];
export const stateOf = (word) => STATES.find((state) => state.word === word) ?? STATES[5];

export function shape(state) {
  const path = svg("path", state.hollow ? { d: state.path, fill: "none", "stroke-width": 1.8 } : { d: state.path });
  return svg("svg", { class: `shape s-${state.word}`, viewBox: "0 0 12 12", "aria-hidden": "true" }, path);
}
