// Pictures of the page, for people to look at: `make screenshots`.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Spectap, browser, fromDisk, until } from './browser.mjs';

const out = process.argv[2];
mkdirSync(out, { recursive: true });
// How long the demo runs before the first picture: longer, and its drafter has failed and come back.
const warm = Number(process.env.WARM_SECONDS ?? 150);

async function look(context, address, { name, width, height, query = '', act, whole = false }) {
  const page = await context.newPage();
  page.on('console', (message) => { if (message.type() === 'error') console.error(`${name}: ${message.text()}`); });
  page.on('pageerror', (error) => console.error(`${name}: ${error}`));
  await fromDisk(page);
  await page.setViewportSize({ width, height });
  await page.goto(`http://${address}/${query}`);
  await page.waitForSelector('html[data-ready]', { timeout: 60_000 });
  if (name !== 'empty') await page.waitForSelector('#facet-bars table', { timeout: 60_000 });
  // Two seconds of the feed, so that nothing is half drawn.
  await page.waitForFunction(() => { globalThis.seen ??= Date.now(); return Date.now() - globalThis.seen > 2_000; });
  await act?.(page);
  await page.screenshot({ path: join(out, `${name}.png`), fullPage: whole });
  await page.close();
  console.log(`${name}.png`);
}

const chromium = await browser();
try {
  const context = (colorScheme, scale = 1) => chromium.newContext({ colorScheme, deviceScaleFactor: scale });
  const light = await context('light');
  const dark = await context('dark');
  const silent = new Spectap(['simulate', '--listen', '127.0.0.1:0', '--level', 'none', '--step-time', '1']);
  const [, engine] = await silent.says(/http:\/\/([\d.:]+)/);
  const tap = new Spectap(['serve', '--upstream', `http://${engine}`, '--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0']);
  const [, data] = await tap.says(/http:\/\/([\d.:]+) passes to/);
  const [, empty] = await tap.says(/numbers on http:\/\/([\d.:]+)/);
  for (let sent = 0; sent < 40; sent += 1) {
    const body = { max_tokens: 12, stream: true, messages: [{ role: 'user', content: 'hello' }], ...(sent % 8 === 0 ? { n: 2 } : {}) };
    await (await fetch(`http://${data}/v1/chat/completions`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) })).text();
  }
  await look(light, empty, { name: 'empty', width: 1280, height: 760 });
  const demo = new Spectap(['demo', '--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0', '--concurrency', '12']);
  const [, address] = await demo.says(/page is at http:\/\/([^/\s]+)\//);
  const began = Date.now();
  await until(() => Date.now() - began > warm * 1_000, 'the demo', warm * 1_000 + 5_000);
  await look(light, address, { name: 'light', width: 1440, height: 1000 });
  await look(light, address, { name: 'whole', width: 1440, height: 1000, whole: true });
  await look(dark, address, { name: 'dark', width: 1440, height: 1000, query: '?window=5m&model=chat-8b' });
  await look(await context('light', 2), address, { name: 'phone', width: 390, height: 844, whole: true });
  await look(dark, address, { name: 'drawer', width: 1440, height: 900, query: '?acceptance=recorded', act: async (page) => {
    await page.locator('#rows-body button').nth(3).click();
    await page.waitForSelector('#drawer[open]');
  } });
  await look(light, address, { name: 'busy', width: 1920, height: 1200, query: '?window=15m&base=tag%3Dpoetry&other=tag%3Dcode', whole: true });
} finally {
  await chromium.close();
  await Spectap.stopAll();
}
