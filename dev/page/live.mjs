// Looks at a real keeper: a node dies and returns, and the page shows it without being loaded again.
import { DESKTOP, PHONE, THEMES, accessible, ask, fail, finish, open, says, shoot } from "./browser.mjs";

const page = await open(DESKTOP, "light");
const amount = (word) => `#legend [data-state=${word}] .soft`;
await says(page, "#live", "live");
await says(page, amount("current"), "24");
await says(page, "#shares", "this one");
await page.evaluate(() => { window.sameDocument = true; });

// It dies, and comes back bare.
await ask("delete web-00003");
await says(page, amount("absent"), "1");
await says(page, "#log", "left the cluster");
await ask("return web-00003");
await says(page, amount("absent"), "0");
await says(page, amount("current"), "24");
await says(page, "#log", "restored");
await page.waitForFunction(() => document.querySelectorAll("#chart .up").length > 0);
if (!(await page.evaluate(() => window.sameDocument))) fail("the page was loaded again");

// Events by kind and by text.
await page.selectOption("#kind", "left");
await says(page, "#log", "web-00003");
if ((await page.$$("#log li")).length !== 1) fail("more than one node left");
await page.fill("#filter", "no such thing");
await says(page, "#log", "No event matches");
await page.fill("#filter", "");
await page.selectOption("#kind", "");

// A node's page, by keyboard: its labels, but not their values.
await page.keyboard.press("Tab");
await page.evaluate(() => document.activeElement.blur());
await page.keyboard.press("/");
await page.keyboard.type("web-00003");
await says(page, "#found", "1 node found");
await page.focus("#nodes a");
await page.keyboard.press("Enter");
await says(page, "#node", "example.com/rack");
await says(page, "#node", "yes, it bears the mark");
const text = await page.textContent("#node");
if (text.includes("eu-central") || text.includes("r00-left")) fail("a value is shown");
await says(page, "#foot", "Values of labels are hidden");
// It is changed by hand while somebody looks: a label that nobody has recorded yet is recorded.
await ask("label web-00003");
await says(page, "#node", "example.com/by-hand");
await accessible(page, "a node's page");
await page.keyboard.press("Escape");
await says(page, "#summary", "24 nodes");

// A listing's preview, in its sandbox.
await page.click("#pages summary");
const frame = page.frameLocator("#pages iframe");
await frame.getByText("10.0.0.1").waitFor();
await accessible(page, "with a preview");

// Both themes, by switch.
const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
const light = await background();
await page.click("#theme");
await page.click("#theme");
await says(page, "#theme", "dark");
if ((await background()) === light) fail("the theme does not change");
await page.reload();
await says(page, "#theme", "dark");

for (const device of [DESKTOP, PHONE]) {
  for (const theme of THEMES) {
    const page = await open(device, theme, "#/node/web-00003");
    await says(page, "#node", "example.com/rack");
    await accessible(page, `${device.name}, ${theme}`);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
    if (wide) fail(`${device.name}: wider than the screen`);
    await shoot(page, `node-${device.name}-${theme}`);
    await page.goto("about:blank");
    await page.context().close();
  }
}
await finish();
