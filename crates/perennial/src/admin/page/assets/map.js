// The fleet as squares, in the order of their names, so that a pool is a patch. Where there are more nodes than squares
// fit, a square is several nodes, and what is wrong with one of them shows.

import { STATES, count, el, fill, number, shape } from "./dom.js";

const SMALLEST = 5;
const LARGEST = 24;
const LABEL = 20;
const POOLS = 8;
const CALM = new Set(["current", "absent", "paused", "unknown"]);

// Nodes whose names begin alike, up to the first digit. Too many kinds of names say nothing: then all are one.
function pools(names) {
  const found = [];
  for (let at = 0; at < names.length; at++) {
    const label = names[at].match(/^\D*/)[0].replace(/[-.]+$/, "");
    if (found.at(-1)?.label !== label) found.push({ label, from: at, to: at });
    found.at(-1).to = at + 1;
    if (found.length > POOLS) break;
  }
  if (found.length > 1 && found.length <= POOLS) return found;
  return [{ label: "", from: 0, to: names.length }];
}

export class Heat {
  #canvas; #tip; #fleet; #open; #swatches;
  #paths = STATES.map((state) => new Path2D(state.path));
  #names = null;
  #pools = [];
  #grid = { size: LARGEST, columns: 1, group: 1, tiles: 0 };
  #hover = -1;

  // `swatches` are elements in the colours of the states: only what is drawn knows which theme it is in.
  constructor(canvas, tip, fleet, swatches, open) {
    this.#canvas = canvas;
    this.#tip = tip;
    this.#fleet = fleet;
    this.#swatches = swatches;
    this.#open = open;
    canvas.addEventListener("pointermove", (event) => this.#point(event));
    canvas.addEventListener("pointerleave", () => this.#leave());
    canvas.addEventListener("click", (event) => { this.#point(event); if (this.#hover >= 0) this.#open(...this.#nodesOf(this.#hover)); });
    new ResizeObserver(() => this.draw()).observe(canvas.parentElement);
  }

  // How many nodes a square is.
  get group() { return this.#grid.group; }

  // Finds the largest squares that fit, and gives every pool its place. Returns the height of it all.
  #layout(width) {
    const { names, size: total } = this.#fleet;
    if (this.#names !== names) [this.#names, this.#pools] = [names, pools(names)];
    const label = this.#pools.length > 1 ? LABEL : 0;
    const room = width < 600 ? 300 : 320;
    const rows = (size, group) => this.#pools.reduce((sum, { from, to }) => sum + Math.ceil(Math.ceil((to - from) / group) / Math.floor(width / size)), 0);
    let [size, group] = [LARGEST, 1];
    while (size > SMALLEST && rows(size, 1) * size > room) size--;
    while (rows(size, group) * size > room && group < total) group++;
    const columns = Math.max(1, Math.floor(width / size));
    let [tile, y] = [0, 0];
    for (const pool of this.#pools) {
      pool.tile = tile;
      pool.tiles = Math.ceil((pool.to - pool.from) / group);
      pool.y = y + label;
      tile += pool.tiles;
      y = pool.y + Math.ceil(pool.tiles / columns) * size + (label ? 6 : 0);
    }
    this.#grid = { size, columns, group, tiles: tile };
    return Math.max(1, y);
  }

  #poolOf(tile) { return this.#pools.findLast((pool) => pool.tile <= tile); }

  #place(tile) {
    const { size, columns } = this.#grid;
    const pool = this.#poolOf(tile);
    const at = tile - pool.tile;
    return [(at % columns) * size, pool.y + Math.floor(at / columns) * size];
  }

  #nodesOf(tile) {
    const pool = this.#poolOf(tile);
    const from = pool.from + (tile - pool.tile) * this.#grid.group;
    return [from, Math.min(pool.to, from + this.#grid.group)];
  }

  // What a square shows: the worst that is wrong with one of its nodes, or else what most of them are.
  #stateOf(tile) {
    const { cells, wanted } = this.#fleet;
    const [from, to] = this.#nodesOf(tile);
    if (to - from === 1) return !wanted || wanted[from] ? cells[from] : -1;
    const seen = new Array(STATES.length).fill(0);
    let any = false;
    for (let at = from; at < to; at++) if (!wanted || wanted[at]) { seen[cells[at]]++; any = true; }
    if (!any) return -1;
    const wrong = seen.findIndex((number, code) => number > 0 && !CALM.has(STATES[code].word));
    return wrong >= 0 ? wrong : seen.indexOf(Math.max(...seen));
  }

  draw() {
    const width = this.#canvas.parentElement.clientWidth;
    if (!width) return;
    const height = this.#layout(width);
    const scale = devicePixelRatio || 1;
    this.#canvas.width = Math.round(width * scale);
    this.#canvas.height = Math.round(height * scale);
    this.#canvas.style.height = `${height}px`;
    const context = this.#canvas.getContext("2d");
    context.scale(scale, scale);
    const style = getComputedStyle(this.#canvas);
    this.#label(context, style);
    const side = this.#grid.size - (this.#grid.size > 8 ? 2 : 1);
    const byState = STATES.map(() => []);
    const others = [];
    for (let tile = 0; tile < this.#grid.tiles; tile++) (byState[this.#stateOf(tile)] ?? others).push(tile);
    context.fillStyle = style.outlineColor;
    for (const tile of others) context.fillRect(...this.#place(tile), side, side);
    // The calm ones first: what is wrong is drawn over its neighbours' edges.
    for (let code = STATES.length - 1; code >= 0; code--) {
      context.fillStyle = context.strokeStyle = getComputedStyle(this.#swatches()[code]).color;
      for (const tile of byState[code]) this.#square(context, code, ...this.#place(tile), side);
    }
    if (this.#hover >= 0 && this.#hover < this.#grid.tiles) {
      const [x, y] = this.#place(this.#hover);
      context.strokeStyle = style.color;
      context.lineWidth = 2;
      context.strokeRect(x - 1, y - 1, side + 2, side + 2);
    }
  }

  #label(context, style) {
    if (this.#pools.length < 2) return;
    context.font = `500 11px ${style.fontFamily}`;
    context.fillStyle = style.caretColor;
    for (const { label, from, to, y } of this.#pools) context.fillText(`${label}  ${number(to - from)}`, 0, y - 6);
  }

  #square(context, code, x, y, side) {
    const { word, hollow } = STATES[code];
    const small = this.#grid.size < 9;
    const loud = CALM.has(word) ? 0 : 0.5;
    if (word === "current") context.fillRect(x, y, side, side);
    else if (hollow && small) context.fillRect(x + side / 2 - 1, y + side / 2 - 1, 2, 2);
    else if (hollow) { context.lineWidth = 1.5; context.strokeRect(x + 0.75, y + 0.75, side - 1.5, side - 1.5); }
    else if (small) context.fillRect(x - loud, y - loud, side + 2 * loud, side + 2 * loud);
    else {
      context.save();
      context.translate(x, y);
      context.scale(side / 12, side / 12);
      context.fill(this.#paths[code]);
      context.restore();
    }
  }

  #leave() {
    this.#tip.hidden = true;
    if (this.#hover < 0) return;
    this.#hover = -1;
    this.draw();
  }

  #point(event) {
    const { size, columns } = this.#grid;
    const box = this.#canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const pool = this.#pools.findLast((one) => one.y <= y);
    const column = Math.floor(x / size);
    const at = pool ? Math.floor((y - pool.y) / size) * columns + column : -1;
    if (!pool || column < 0 || column >= columns || at >= pool.tiles) return this.#leave();
    if (pool.tile + at !== this.#hover) {
      this.#hover = pool.tile + at;
      this.draw();
      this.#describe(this.#hover);
    }
    const [left, top] = this.#place(this.#hover);
    this.#tip.hidden = false;
    this.#tip.style.left = `${Math.max(0, Math.min(left + size + 6, box.width - this.#tip.offsetWidth - 4))}px`;
    this.#tip.style.top = `${top + size + 6}px`;
  }

  #describe(tile) {
    const { names, cells } = this.#fleet;
    const [from, to] = this.#nodesOf(tile);
    if (to - from === 1) {
      const state = STATES[cells[from]];
      return fill(this.#tip, el("div", { class: "state" }, shape(state), names[from]), `${state.word}: ${state.says}`);
    }
    const seen = STATES.map(() => 0);
    for (let at = from; at < to; at++) seen[cells[at]]++;
    const words = STATES.flatMap(({ word }, code) => (seen[code] ? [`${number(seen[code])} ${word}`] : []));
    fill(this.#tip, el("div", {}, `${names[from]} … ${names[to - 1]}`), `${count(to - from, "node")}: ${words.join(", ")}`);
  }
}
