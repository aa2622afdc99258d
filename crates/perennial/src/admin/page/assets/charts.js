// Restores over time and how long they took, as pictures with the same in words.

import { bar, count, el, fill, hour, number, svg } from "./dom.js";

const [WIDTH, HEIGHT, MIDDLE] = [600, 120, 84];

// One entry for each stretch of time, also for those in which nothing happened.
function stretches(series, now) {
  const length = series.seconds * 1000;
  const last = Math.floor(now / length);
  const known = new Map(series.data.map((slot) => [slot[0], slot]));
  return Array.from({ length: series.slots }, (_, place) => {
    const slot = known.get(last - series.slots + 1 + place);
    const [, restored = 0, left = 0, slowest = 0, share = null, times = []] = slot ?? [];
    return { at: (last - series.slots + 1 + place) * length, restored, left, slowest, share, times };
  });
}

export function totals(series, now) {
  const all = stretches(series, now);
  const times = [...series.within, Infinity].map((_, place) => all.reduce((sum, slot) => sum + (slot.times[place] ?? 0), 0));
  const restored = all.reduce((sum, slot) => sum + slot.restored, 0);
  const within = (part) => {
    let sum = 0;
    for (const [place, number] of times.entries()) {
      sum += number;
      if (sum >= part * restored) return series.within[place] ?? Infinity;
    }
    return Infinity;
  };
  return { restored, left: all.reduce((sum, slot) => sum + slot.left, 0), times, slowest: Math.max(...all.map((slot) => slot.slowest)), half: within(0.5), most: within(0.95) };
}

export const seconds = (value) => (value === Infinity ? "over 5 min" : value < 60 ? `${value} s` : `${Math.round(value / 6) / 10} min`);

export function restores(place, series, now, words) {
  const all = stretches(series, now);
  const sum = totals(series, now);
  const most = Math.max(1, ...all.map((slot) => slot.restored));
  const least = Math.max(1, most / 2, ...all.map((slot) => slot.left));
  const step = WIDTH / all.length;
  const bars = [];
  for (const [at, slot] of all.entries()) {
    const said = `${hour(slot.at)}: ${slot.restored} restored, ${slot.left} left`;
    const column = (kind, value, scale, up) => {
      if (!value) return null;
      const height = Math.max(2, value * scale);
      return svg("rect", { class: kind, x: at * step + 1, width: Math.max(1, step - 2), y: up ? MIDDLE - height : MIDDLE + 1, height, rx: 1 }, svg("title", {}, said));
    };
    bars.push(column("up", slot.restored, (MIDDLE - 4) / most, true), column("down", slot.left, (HEIGHT - 4 - MIDDLE) / least, false));
  }
  const said = `${words}: ${count(sum.restored, "node")} restored, ${count(sum.left, "node")} left.`;
  fill(place,
    svg("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": said },
      svg("line", { x1: 0, x2: WIDTH, y1: MIDDLE + 0.5, y2: MIDDLE + 0.5 }), bars),
    el("div", { class: "axis", "aria-hidden": "true" }, [0, 0.5].map((part) => el("span", {}, hour(all[Math.floor(part * all.length)].at))), el("span", {}, "now")),
    el("p", { class: "keys" }, el("span", {}, el("i"), `${number(sum.restored)} restored`), el("span", { class: "down" }, el("i"), `${number(sum.left)} left`), el("span", {}, `at most ${number(most)} in ${series.seconds / 60} min`)));
}

export function latency(place, series, now) {
  const { times, restored, half, most, slowest } = totals(series, now);
  if (!restored) return fill(place, el("p", { class: "empty" }, "Nothing was restored in this time."));
  const last = times.findLastIndex((number) => number > 0);
  const rows = times.slice(0, Math.max(last + 1, 3)).flatMap((value, at) => [
    el("span", { class: "soft" }, at < series.within.length ? `up to ${seconds(series.within[at])}` : "longer"),
    bar(value / restored),
    el("span", {}, number(value)),
  ]);
  fill(place, el("p", {}, `Half within ${seconds(half)}, 95 % within ${seconds(most)}, the slowest ${seconds(slowest)}.`), el("div", { class: "bars" }, rows));
}

// The worst share of each minute. Flat is good.
export function spark(series, now) {
  const shares = stretches(series, now).map((slot) => slot.share);
  const low = Math.min(0.99, ...shares.filter((share) => share !== null));
  let path = "";
  let last = 1;
  shares.forEach((share, at) => {
    last = share ?? last;
    path += `${path ? "L" : "M"}${((at / (shares.length - 1)) * 92).toFixed(1)} ${(29 - ((last - low) / (1 - low)) * 28).toFixed(1)}`;
  });
  return svg("svg", { class: "spark", viewBox: "0 0 92 30", "aria-hidden": "true" }, svg("path", { d: path }));
}
