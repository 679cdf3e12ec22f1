// Chromium on pages. One command; the report is JSON on stdout.
// COOKIE (NAME=VALUE) in the environment: of a user who has logged in.
//   node drive.js look  URL OUT SCHEME PATH...  every path, wide and narrow: axe, overflow, a picture in OUT; then with
//                                             all that is folded unfolded: what is wider than the page, or scrolls
//   node drive.js keys  URL STEP...           keys only from `/` on: `type:WORD`, a key, or a key that leads to another
//                                             page (`Enter>`); what the page says then
//   node drive.js live  URL PATH WORD         PATH stays open until a row says WORD, after `n` for what is new
'use strict';
const fs = require('node:fs');
const { chromium } = require('playwright-core');
const AXE = fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const HANG_MS = 120000;
const [command, url, ...words] = process.argv.slice(2);

async function open(browser, errors, options) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
  if (process.env.COOKIE) {
    const [name, value] = process.env.COOKIE.split('=');
    await context.addCookies([{ name, value, url }]);
  }
  const page = await context.newPage();
  page.setDefaultTimeout(HANG_MS);
  page.on('pageerror', error => errors.push(error.message));
  page.on('console', message => { if (message.type() === 'error') errors.push(message.text()); });
  return page;
}

async function look(browser, out, colorScheme, paths) {
  const found = [];
  fs.mkdirSync(out, { recursive: true });
  for (const path of paths) {
    for (const width of [1440, 390]) {
      const errors = [];
      const page = await open(browser, errors, { colorScheme, viewport: { width, height: 900 } });
      await page.goto(url + path, { waitUntil: 'load' });
      const name = path.replace(/[^a-z]+/gi, '-').replace(/^-|-$/g, '') || 'overview';
      await page.screenshot({ path: `${out}/${name}-${colorScheme}-${width}.png`, fullPage: true });
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      const tops = await page.evaluate(() => Object.fromEntries([...document.querySelectorAll('h2')].map(
        each => [each.textContent, Math.round(each.getBoundingClientRect().top)])));
      await page.evaluate(AXE);
      const { violations } = await page.evaluate(() => axe.run(document));
      const ground = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      const wide = await page.evaluate(() => {
        document.querySelectorAll('details').forEach(each => { each.open = true; });
        const scrolls = each => /auto|scroll/.test(getComputedStyle(each).overflowX);
        const isWide = each => each.getBoundingClientRect().right > innerWidth + 1
          || (scrolls(each) && each.scrollWidth > each.clientWidth);
        const those = [...document.querySelectorAll('body *')].filter(each => !each.closest('.sr') && isWide(each));
        return those.slice(0, 5).map(each => each.outerHTML.slice(0, 200));
      });
      found.push({
        path, width, overflow, errors, ground, tops, wide,
        violations: violations.map(each => ({ id: each.id, impact: each.impact, html: each.nodes[0].html })),
      });
      await page.context().close();
    }
  }
  return found;
}

async function keys(browser, steps) {
  const errors = [];
  const page = await open(browser, errors, {});
  await page.clock.setFixedTime(Date.now()); // `g` and the key behind it may be far apart on a busy machine
  await page.goto(`${url}/`, { waitUntil: 'load' });
  for (const step of steps) {
    if (step.startsWith('type:')) await page.keyboard.type(step.slice(5));
    else if (step.length > 1 && step.endsWith('>')) {
      const leaves = page.waitForEvent('framenavigated');
      await page.keyboard.press(step.slice(0, -1));
      await leaves; // the next key is for the page that it leads to
      await page.waitForLoadState('load');
    } else await page.keyboard.press(step);
  }
  const state = () => page.evaluate(() => ({
    focus: document.activeElement?.textContent.trim() || document.activeElement?.id || '',
    dialog: Boolean(document.querySelector('dialog[open]')),
    theme: document.documentElement.dataset.theme || '',
    paused: document.querySelector('#pause')?.getAttribute('aria-pressed') || '',
    rows: [...document.querySelectorAll('tbody[data-rows] > tr:not(.more)')].filter(row => row.offsetParent).length,
    filter: document.querySelector('input[data-filter]')?.value || '',
    opened: document.querySelectorAll('details[open]').length,
    text: document.querySelector('#main').innerText,
  }));
  return { url: page.url(), errors, ...await state() };
}

async function live(browser, path, word) {
  const errors = [];
  const page = await open(browser, errors, {});
  await page.goto(url + path, { waitUntil: 'load' });
  process.stderr.write('open\n');
  const says = async () => (await page.locator('tbody[data-rows]').allInnerTexts()).join(' ').includes(word);
  const until = Date.now() + HANG_MS;
  let waited = false;
  while (!await says() && Date.now() < until) {
    if (await page.locator('#newer').isVisible()) { waited = true; await page.keyboard.press('n'); }
    await page.waitForTimeout(100);
  }
  return { errors, says: await says(), waited, live: await page.locator('#live').innerText() };
}

(async () => {
  const sandbox = process.getuid() === 0 ? ['--no-sandbox'] : [];
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM || '/usr/bin/chromium', args: sandbox });
  try {
    const does = {
      look: () => look(browser, words[0], words[1], words.slice(2)),
      keys: () => keys(browser, words),
      live: () => live(browser, ...words),
    };
    process.stdout.write(`${JSON.stringify(await does[command]())}\n`);
  } finally {
    await browser.close();
  }
})().catch(error => { process.stderr.write(`${error.stack}\n`); process.exitCode = 1; });
