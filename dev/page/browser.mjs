// A real browser for the scripts beside this one: Debian's chromium, driven by Playwright.
import { accessSync } from "node:fs";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import axe from "axe-core";
import { chromium } from "playwright-core";

const PROGRAMS = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome", "/usr/bin/google-chrome-stable"];
export const DESKTOP = { name: "desktop", viewport: { width: 1280, height: 860 } };
export const PHONE = { name: "phone", viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true };
export const THEMES = ["light", "dark"];
/// How long anything may take on a loaded machine.
export const SOON = 60_000;

export const [, , url, shots] = process.argv;

export function fail(message) {
  console.log(`FAILED: ${message}`);
  process.exit(1);
}
process.on("unhandledRejection", (error) => fail(error.stack ?? error));

function program() {
  const found = [process.env.CHROMIUM, ...PROGRAMS].find((path) => {
    try { accessSync(path); return true; } catch { return false; }
  });
  return found ?? fail("no chromium: dev/prerequisites page installs it, or says how");
}

// Who started this script does what it asks for, and says when it is done.
const socket = connect(Number(process.env.ASK_PORT), "127.0.0.1");
const answers = createInterface({ input: socket })[Symbol.asyncIterator]();
export async function ask(what) {
  socket.write(`${what}\n`);
  const { value } = await answers.next();
  if (value !== "done") fail(`${what}: ${value}`);
}

const browser = await chromium.launch({ executablePath: program(), args: ["--disable-dev-shm-usage", "--font-render-hinting=none"] });
const complaints = [];

// A page that tells of everything that goes wrong in it, and of tasks that keep it busy for long.
export async function open(device, colorScheme, path = "") {
  const { name: _, ...rest } = device;
  const context = await browser.newContext({ ...rest, colorScheme, reducedMotion: "reduce", locale: "en-GB" });
  const page = await context.newPage();
  page.setDefaultTimeout(SOON);
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) complaints.push(`console: ${message.text()}`); });
  page.on("pageerror", (error) => complaints.push(`error: ${error.message}`));
  await page.addInitScript(() => {
    window.long = [];
    new PerformanceObserver((list) => window.long.push(...list.getEntries().map((entry) => entry.duration))).observe({ type: "longtask", buffered: true });
    document.addEventListener("securitypolicyviolation", (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`));
  });
  await page.goto(url + path);
  return page;
}

// The longest task since the last time, in milliseconds; 0 if none took 50.
export const longest = (page) => page.evaluate(() => Math.round(Math.max(0, ...window.long.splice(0))));

// Waits until an element says this.
export const says = (page, selector, words) =>
  page.waitForFunction(([selector, words]) => document.querySelector(selector)?.textContent.includes(words), [selector, words], { polling: 50 })
    .catch(async () => fail(`${selector} does not say "${words}" but "${await page.textContent(selector).catch(() => "nothing")}"`));

// Runs axe's checks; whatever they find is a failure.
export async function accessible(page, what) {
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
  for (const { id, help, nodes } of violations) complaints.push(`axe, ${what}: ${id}: ${help}: ${nodes.slice(0, 3).map((node) => `${node.html} ${node.failureSummary}`).join(" | ")}`);
}

// A picture for the docs, where somebody asked for pictures.
export async function shoot(page, name, options = {}) {
  if (shots) await page.screenshot({ path: `${shots}/${name}.png`, ...options });
}

export async function finish() {
  await browser.close();
  socket.destroy();
  if (complaints.length) fail(complaints.join("\n"));
  console.log("all is well");
}
