// Looks at a fleet of 100,000 nodes: it loads, searching does not freeze it, changes arrive, it is accessible.
import { DESKTOP, PHONE, THEMES, accessible, ask, fail, finish, longest, open, says, shoot, shots } from "./browser.mjs";

const NODES = "100,000 nodes";

const page = await open(DESKTOP, "light");
await says(page, "#summary", NODES);
const loaded = await longest(page);

// Somebody types a name.
await page.keyboard.press("/");
await page.keyboard.type("batch-0421", { delay: 30 });
await says(page, "#found", "3 nodes found");
const searched = await longest(page);
await page.keyboard.press("Escape");
await says(page, "#found", "to look at");
console.log(`measured: longest task ${loaded} ms while loading, ${searched} ms while searching (0: none over 50 ms)`);

// Only one state.
await page.click("#legend button:has-text('unreadable')");
await says(page, "#found", "2 nodes found");
await page.click("#legend button:has-text('unreadable')");

// A name that looks like HTML is a name. It is not in pictures.
if (!shots) {
  await page.fill("#search", "<img");
  await says(page, "#nodes", "<img·src=x·onerror=alert(1)>");
  if (await page.$("main img")) fail("a name became an element");
  await page.fill("#search", "");
}

// One node dies; then thousands, which is told by sending everything anew. Pictures are of a quieter day.
if (!shots) await change();
await page.close();

async function change() {
  const absent = "#legend [data-state=absent] .soft";
  await ask("one dies");
  await says(page, absent, "2,001");
  await says(page, "#log", "batch-00002");
  await ask("many die");
  await says(page, absent, "10,001");
  await ask("all return");
  await says(page, absent, "2,000");
  console.log(`measured: longest task ${await longest(page)} ms while 8,000 nodes die and return`);
}

for (const device of [DESKTOP, PHONE]) {
  for (const theme of THEMES) {
    const page = await open(device, theme);
    await says(page, "#summary", NODES);
    await says(page, "#live", "live");
    await accessible(page, `${device.name}, ${theme}`);
    await shoot(page, `fleet-${device.name}-${theme}`, { fullPage: device === DESKTOP });
    await page.context().close();
  }
}
await finish();
