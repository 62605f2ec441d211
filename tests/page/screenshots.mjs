// Pictures of the page, for people to look at: `make screenshots`.

import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Spectap, browser, until } from './browser.mjs';

const out = process.argv[2];
mkdirSync(out, { recursive: true });
// With a folder of the page's files, these are looked at instead of those in the binary.
const files = process.env.SPECTAP_PAGE_FILES;
// How long the demo runs before the first picture: longer, and its drafter has failed and come back.
const warm = Number(process.env.WARM_SECONDS ?? 135);

async function look(context, address, { name, width, height, query = '', act, whole = false }) {
  const page = await context.newPage();
  page.on('console', (message) => { if (message.type() === 'error') console.error(`${name}: ${message.text()}`); });
  page.on('pageerror', (error) => console.error(`${name}: ${error}`));
  if (files) {
    await page.route('**/page/*', (route) => {
      const file = new URL(route.request().url()).pathname.split('/').at(-1);
      const type = { js: 'text/javascript', css: 'text/css', svg: 'image/svg+xml' }[file.split('.').at(-1)];
      return route.fulfill({ body: readFileSync(join(files, file)), contentType: type });
    });
    await page.route((url) => url.pathname === '/', (route) => route.fulfill({ body: readFileSync(join(files, 'index.html')), contentType: 'text/html' }));
  }
  await page.setViewportSize({ width, height });
  await page.goto(`http://${address}/${query}`);
  await page.waitForSelector('html[data-ready]', { timeout: 60_000 });
  // Two seconds of the feed, so that nothing is half drawn.
  await page.waitForFunction(() => { globalThis.seen ??= Date.now(); return Date.now() - globalThis.seen > 2_000; });
  await act?.(page);
  await page.screenshot({ path: join(out, `${name}.png`), fullPage: whole });
  await page.close();
  console.log(`${name}.png`);
}

const chromium = await browser();
try {
  const idle = new Spectap(['serve', '--upstream', 'http://127.0.0.1:9', '--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0', '--ready', 'always']);
  const [, empty] = await idle.says(/numbers on http:\/\/(\S+)/);
  const context = (colorScheme, scale = 1) => chromium.newContext({ colorScheme, deviceScaleFactor: scale });
  const light = await context('light');
  const dark = await context('dark');
  await look(light, empty, { name: 'empty', width: 1280, height: 720 });
  await idle.stop();
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
