// The fleet as this page knows it: names in order, one state each. 100,000 of them are an array and some bytes.

import { STATES } from "./dom.js";

const CODE = new Map(STATES.map((state, code) => [state.letter, code]));
// What a digit is worth, by its code.
const DIGIT = Uint8Array.from({ length: 128 }, (_, code) => parseInt(String.fromCharCode(code), 36) || 0);
const UNKNOWN = CODE.get("?");
const CURRENT = CODE.get("c");
const ABSENT = CODE.get("a");

export class Fleet {
  names = [];
  cells = new Uint8Array(0);
  counts = STATES.map(() => 0);
  // Which nodes are looked for: one byte each, or null for all of them.
  wanted = null;
  found = 0;
  #text = "";
  #states = new Set();

  get size() { return this.names.length; }
  get there() { return this.size - this.counts[ABSENT]; }
  get current() { return this.counts[CURRENT]; }
  get searching() { return this.#text !== "" || this.#states.size > 0; }
  get text() { return this.#text; }

  // Everything anew. Names come as what they share with the one before (two digits), and the rest.
  load({ tail, names, cells }) {
    const rests = names ? names.split(" ") : [];
    let before = "";
    for (let index = 0; index < rests.length; index++) {
      const rest = rests[index];
      before = before.slice(0, 36 * DIGIT[rest.charCodeAt(0)] + DIGIT[rest.charCodeAt(1)]) + rest.slice(2);
      rests[index] = before + tail;
    }
    this.names = rests;
    this.cells = new Uint8Array(rests.length);
    for (let index = 0; index < rests.length; index++) this.cells[index] = CODE.get(cells[index]) ?? UNKNOWN;
    this.#recount();
  }

  // Folds changes in: names by the letter of their new state, `-` for those that are gone.
  change(changes) {
    const gone = new Set();
    const added = [];
    for (const [letter, names] of Object.entries(changes)) {
      for (const name of names) {
        const at = this.find(name);
        if (letter === "-") { if (at >= 0) gone.add(at); }
        else if (at >= 0) this.cells[at] = CODE.get(letter) ?? UNKNOWN;
        else added.push([name, CODE.get(letter) ?? UNKNOWN]);
      }
    }
    if (gone.size || added.length) {
      const lines = this.names.map((name, at) => [name, this.cells[at]]).filter((_, at) => !gone.has(at)).concat(added);
      lines.sort(([one], [other]) => (one < other ? -1 : 1));
      this.names = lines.map(([name]) => name);
      this.cells = Uint8Array.from(lines, ([, code]) => code);
    }
    this.#recount();
  }

  // Where a name is, or less than 0.
  find(name) {
    let low = 0;
    let high = this.names.length - 1;
    while (low <= high) {
      const middle = (low + high) >> 1;
      if (this.names[middle] === name) return middle;
      if (this.names[middle] < name) low = middle + 1;
      else high = middle - 1;
    }
    return -1;
  }

  // Looks for nodes by a part of their name, and by their states.
  seek(text, states) {
    this.#text = text.trim().toLowerCase();
    this.#states = new Set(states);
    this.#match();
  }

  // The worst first, of those that are looked for; without a search, only what somebody may want to look at.
  *worst() {
    for (let code = 0; code < STATES.length; code++) {
      if (!this.searching && (code === CURRENT || code === ABSENT)) continue;
      if (this.counts[code] === 0) continue;
      for (let at = 0; at < this.size; at++) {
        if (this.cells[at] === code && (!this.wanted || this.wanted[at])) yield at;
      }
    }
  }

  #recount() {
    this.counts = STATES.map(() => 0);
    for (const code of this.cells) this.counts[code]++;
    this.#match();
  }

  #match() {
    this.found = this.size;
    this.wanted = null;
    if (!this.searching) return;
    this.wanted = new Uint8Array(this.size);
    this.found = 0;
    for (let at = 0; at < this.size; at++) {
      if (this.#states.size && !this.#states.has(this.cells[at])) continue;
      if (this.#text && !this.names[at].includes(this.#text)) continue;
      this.wanted[at] = 1;
      this.found++;
    }
  }
}
