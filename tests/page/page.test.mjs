// The page in a real Chromium, before a real tap and the simulated engine.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Spectap, axeSource, browser, fromDisk, until } from './browser.mjs';

const ACCEPTANCE = '0.9,0.8,0.7,0.6';
let chromium; let engine; let tap; let folder;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'spectap-page-'));
  chromium = await browser();
  engine = await startEngine('--level', 'detailed');
  tap = await startTap(engine.address);
});

after(async () => {
  await chromium?.close();
  await Spectap.stopAll();
  await rm(folder, { recursive: true });
});

async function startEngine(...more) {
  const started = new Spectap(['simulate', '--listen', '127.0.0.1:0', '--model', `m=${ACCEPTANCE}`, '--prefill-time', '1', '--step-time', '0', ...more]);
  const [, address] = await started.says(/http:\/\/([\d.:]+)/);
  return Object.assign(started, { address });
}

async function startTap(upstream, { listen = '127.0.0.1:0', admin = '127.0.0.1:0', more = [] } = {}) {
  const started = new Spectap(['serve', '--upstream', `http://${upstream}`, '--listen', listen, '--admin-listen', admin, ...more]);
  const [, data] = await started.says(/http:\/\/([\d.:]+) passes to/);
  const [, page] = await started.says(/numbers on http:\/\/([\d.:]+)/);
  return Object.assign(started, { data, page });
}

// One request, with the acceptance of its drafts.
async function send(of, { tag, acceptance, tokens = 40, stream = true, more = {} } = {}) {
  const body = { model: 'm', stream, max_tokens: tokens, messages: [{ role: 'user', content: 'hello' }], ...more };
  if (acceptance) body.simulate_acceptance = [acceptance, acceptance, acceptance, acceptance];
  const response = await fetch(`http://${of.data}/v1/chat/completions`, { method: 'POST', headers: { 'Content-Type': 'application/json', ...(tag ? { 'X-Spectap-Tag': tag } : {}) }, body: JSON.stringify(body) });
  await response.text();
}

async function sendMany(of, count, options) { for (let sent = 0; sent < count; sent += 1) await send(of, options); }

const api = async (of, path) => (await fetch(`http://${of.page}/api/v1/${path}`)).json();

// Opens the page and holds against it whatever no page may do.
async function open(of, query = '', { context: options = {}, may = /^$/, prepare = async () => {} } = {}) {
  const context = await chromium.newContext({ viewport: { width: 1440, height: 1000 }, ...options });
  const page = await context.newPage();
  const faults = [];
  page.on('console', (message) => { if (message.type() === 'error' && !may.test(message.text())) faults.push(message.text()); });
  page.on('pageerror', (error) => faults.push(String(error)));
  page.on('request', (request) => { const url = new URL(request.url()); if (url.protocol !== 'blob:' && url.host !== of.page) faults.push(`a request to ${url}`); });
  await fromDisk(page);
  await prepare(page);
  await page.goto(`http://${of.page}/${query}`);
  page.setDefaultTimeout(20_000);
  const done = async () => { await context.close(); assert.deepEqual(faults, []); };
  return { page, done };
}

const ready = (page) => page.waitForSelector('html[data-ready]', { state: 'attached' });
const value = (page, figure) => page.locator(`[data-figure=${figure}] [data-value]`).first().getAttribute('data-value');
const shown = async (page, figure) => Number(await value(page, figure));
const near = (one, other) => Math.abs(one - other) < 1e-9;

test('the figures are those of the API, also under a filter that the address keeps', async () => {
  await sendMany(tap, 40, { tag: 'code' });
  await sendMany(tap, 35, { tag: 'poetry', acceptance: 0.3 });
  const { page, done } = await open(tap, '?window=all');
  await ready(page);
  const equal = async (query) => {
    const summary = await api(tap, `summary?window=all${query}`);
    const m = summary.metrics;
    const wanted = {
      length: m.spec_decode_token_weighted_acceptance_length.avg,
      rate: m.spec_decode_overall_draft_acceptance_rate.avg / 100,
      share: summary.gain.draft_token_share.avg,
      told: summary.record_share,
    };
    await until(async () => near(await shown(page, 'length'), wanted.length), async () => `length ${wanted.length}, not ${await value(page, 'length')}`);
    for (const [figure, number] of Object.entries(wanted)) assert.ok(near(await shown(page, figure), number), figure);
    assert.match(await page.locator('[data-figure=length]').innerText(), new RegExp(`n = ${summary.n.recorded}`));
  };
  await equal('');
  const groups = (await api(tap, 'summary?window=all&by=tag')).groups;
  for (const { key, metrics } of groups) {
    const cell = page.locator(`#categories tr[data-tag=${key.tag}] [data-column=length]`);
    assert.equal(await cell.innerText(), metrics.spec_decode_token_weighted_acceptance_length.avg.toFixed(2));
  }
  await page.locator('#categories [data-choose=poetry]').click();
  await equal('&tag=poetry');
  assert.match(page.url(), /tag=poetry/);
  await page.reload();
  await ready(page);
  await equal('&tag=poetry');
  assert.equal(await page.locator('#choose-tag').inputValue(), 'poetry');
  await page.locator('#choose-tag').selectOption('');
  await equal('');
  await done();
});

test('the table is filtered, sorted and found through, and its columns chosen', async () => {
  const { page, done } = await open(tap, '?window=all');
  await ready(page);
  const counted = (text) => page.waitForFunction((wanted) => document.getElementById('count').textContent.startsWith(wanted), text);
  await counted('75 of 75');
  await page.fill('#filter-q', 'poetry');
  await counted('35 of 75');
  await page.fill('#filter-q', '');
  await page.locator('#filter-acceptance').selectOption('zero_step');
  await counted('0 of 75');
  assert.match(await page.locator('#rows-body').innerText(), /No request passes the filters/);
  await page.locator('#filter-acceptance').selectOption('');
  await page.locator('#rows-head [data-sort=length]').click();
  const lengths = () => page.locator('#rows-body tr[data-id] td:nth-child(8)').allInnerTexts().then((all) => all.map(Number));
  await until(async () => { const all = await lengths(); return all.length > 5 && all.every((it, index) => index === 0 || it <= all[index - 1]); });
  await page.locator('#rows-head [data-sort=length]').click();
  await until(async () => { const all = await lengths(); return all.length > 5 && all.every((it, index) => index === 0 || it >= all[index - 1]); });
  await page.locator('.menu summary').click();
  await page.locator('#columns input[value=route]').check();
  await page.waitForSelector('#rows-head [data-sort=route]');
  assert.match(page.url(), /columns=/);
  await done();
});

test('a click on the heatmap leaves the requests of that cell', async () => {
  await sendMany(tap, 20, { tag: 'now' });
  const { page, done } = await open(tap, '?window=5m');
  await ready(page);
  const history = await api(tap, 'history?window=5m');
  const seconds = (text) => Date.parse(text) / 1000;
  const columns = (seconds(history.to) - seconds(history.from)) / history.step_seconds;
  const at = Number(Object.keys(history.stretches).at(-1));
  const box = await page.locator('#heatmap-canvas').boundingBox();
  const column = (at - seconds(history.from)) / history.step_seconds;
  const accepted = 4; const rows = 5;
  const x = 30 + (column + 0.5) * ((box.width - 38) / columns);
  const y = 18 + (rows - 1 - accepted + 0.5) * ((box.height - 40) / rows);
  await page.locator('#heatmap-canvas').click({ position: { x, y } });
  const slice = new URL(page.url()).searchParams.get('slice');
  assert.match(slice, /^\d+-\d+-4$/);
  const [from, to] = slice.split('-').map(Number);
  assert.equal(to - from, 5);
  const { requests } = await api(tap, 'requests?limit=1000');
  const wanted = requests.filter((it) => seconds(it.ended_at) >= from && seconds(it.ended_at) < to && it.spec_decode_acceptance.some((record) => record.acceptance_histogram[4] > 0));
  assert.ok(wanted.length > 0);
  await page.waitForFunction((text) => document.getElementById('count').textContent.startsWith(text), `${wanted.length} of `);
  await page.locator('#heatmap-canvas').focus();
  await page.keyboard.press('Escape');
  await page.waitForFunction(() => !location.search.includes('slice'));
  await page.keyboard.press('ArrowLeft');
  assert.match(await page.locator('#heatmap-readout').innerText(), /accepted|no steps/);
  await done();
});

test('the drawer shows every field and each step, is copied, and gives the focus back', async () => {
  const { page, done } = await open(tap, '?window=all', { context: { permissions: ['clipboard-read', 'clipboard-write'] } });
  await ready(page);
  const row = page.locator('#rows-body tr[data-id]').first();
  const id = await row.getAttribute('data-id');
  await row.locator('button').focus();
  await page.keyboard.press('Enter');
  await page.waitForSelector('#drawer[open]');
  const request = await api(tap, `requests/${id}`);
  const [record] = request.spec_decode_acceptance;
  const cells = (kind) => page.locator(`#drawer .strip .${kind}`).count();
  assert.equal(await cells('kept'), record.num_accepted_draft_tokens);
  assert.equal(await cells('thrown'), record.num_draft_tokens - record.num_accepted_draft_tokens);
  const fields = await page.locator('#drawer .fields').innerText();
  for (const name of ['timing.time_to_first_token_ms', 'usage.completion_tokens', 'facets.temperature', request.request_id, request.lane]) assert.ok(fields.includes(name), name);
  await page.locator('#copy').click();
  await page.waitForFunction(() => document.querySelector('#drawer [role=status]').textContent.includes('copied'));
  assert.deepEqual(JSON.parse(await page.evaluate(() => navigator.clipboard.readText())), request);
  await page.keyboard.press('Escape');
  await page.waitForSelector('#drawer', { state: 'hidden' });
  assert.equal(await page.evaluate(() => document.activeElement.dataset.key), id);
  const [download] = await Promise.all([page.waitForEvent('download'), page.locator('#export').click()]);
  const lines = readFileSync(await download.path(), 'utf8').trim().split('\n');
  assert.equal(lines.length, (await api(tap, 'requests?limit=1000')).requests.length);
  await done();
});

test('the what-if cursor reads the advice, and a cost gives a speed-up', async () => {
  const { page, done } = await open(tap, '?window=all');
  await ready(page);
  const { advice } = await api(tap, 'summary?window=all');
  assert.equal(advice.depths.length, 4);
  await page.locator('#depth').focus();
  await page.keyboard.press('Home');
  await page.keyboard.press('ArrowRight');
  const length = page.locator('#what-if-length');
  await page.waitForFunction(() => location.search.includes('depth=2'));
  await until(async () => near(Number(await length.getAttribute('data-low')), advice.depths[1].length.low));
  assert.ok(near(Number(await length.getAttribute('data-high')), advice.depths[1].length.high));
  await page.fill('#cost', '0.1');
  const speed = (advice.depths[1].length.low / 1.2).toFixed(2);
  await until(async () => (await page.locator('#what-if-speed').innerText()).startsWith(speed), async () => `${speed}, not ${await page.locator('#what-if-speed').innerText()}`);
  await done();
});

test('two tags are compared as the API does, and a run begun on the page is compared with the one before', async () => {
  const { page, done } = await open(tap, '?window=all');
  await ready(page);
  await page.locator('#choose-base').selectOption('tag=poetry');
  await page.locator('#choose-other').selectOption('tag=code');
  const row = page.locator('#comparison tr[data-figure=spec_decode_token_weighted_acceptance_length]').first();
  const found = await api(tap, `compare?base=${encodeURIComponent('tag=poetry')}&other=${encodeURIComponent('tag=code')}`);
  const [length] = found.others[0].differences;
  assert.equal(length.verdict, 'higher');
  await until(async () => (await row.innerText()).includes('higher'));
  assert.ok((await row.innerText()).includes(`+${length.difference.toFixed(2)}`));
  await page.locator('#begin').click();
  await page.fill('#run-name', 'k = <b>4</b>');
  await page.keyboard.press('Enter');
  await page.waitForSelector('#runs [data-run="k = <b>4</b>"]');
  await sendMany(tap, 3, {});
  await page.locator('#runs [data-pair="0"]').click();
  await until(async () => (await page.locator('#comparison').innerText()).includes('too few'));
  assert.equal(await page.locator('#choose-other').inputValue(), new URLSearchParams({ run: 'k = <b>4</b>' }).toString());
  await done();
});

test('what the engine does differently shows on the page and in the API within five seconds', async () => {
  const own = await startTap(engine.address);
  await sendMany(own, 20, { acceptance: 0.95 });
  const { page, done } = await open(own, '?window=1m');
  await ready(page);
  await until(async () => (await shown(page, 'length')) > 4);
  const began = Date.now();
  await sendMany(own, 20, { acceptance: 0.05 });
  const wanted = (await api(own, 'summary?window=1m')).metrics.spec_decode_token_weighted_acceptance_length.avg;
  assert.ok(wanted < 3, `the API shows ${wanted}`);
  await until(async () => near(await shown(page, 'length'), wanted), 'the change', 5_000);
  assert.ok(Date.now() - began < 15_000);
  await done();
  await own.stop();
});

test('a pause holds the page still, and going on catches up', async () => {
  const own = await startTap(engine.address);
  await sendMany(own, 3, {});
  const { page, done } = await open(own, '?window=all');
  await ready(page);
  const rows = () => page.locator('#count').innerText();
  await until(async () => (await rows()).startsWith('3 of 3'));
  await page.locator('#pause').click();
  const still = await page.locator('#stats').innerText();
  await sendMany(own, 4, { acceptance: 0.1 });
  const heard = page.waitForResponse((response) => response.url().includes('/summary'), { timeout: 15_000 }).catch(() => null);
  await Promise.race([heard, new Promise((done) => setTimeout(done, 2_500))]);
  assert.equal(await page.locator('#stats').innerText(), still);
  assert.match(await rows(), /^3 of 3/);
  await page.locator('#pause').click();
  await until(async () => (await rows()).startsWith('7 of 7'));
  await done();
  await own.stop();
});

test('a tap that went and came back is followed again', async () => {
  const own = await startTap(engine.address);
  await sendMany(own, 5, {});
  const { page, done } = await open(own, '?window=all', { may: /Failed to load resource|ERR_/ });
  await ready(page);
  await until(async () => (await page.locator('#count').innerText()).startsWith('5 of 5'));
  await own.stop();
  await page.waitForSelector('#status[data-kind=waiting]');
  assert.match(await page.locator('#status').innerText(), /does not answer|ended the feed/);
  const again = await startTap(engine.address, { listen: own.data, admin: own.page });
  await page.waitForSelector('#status[data-kind=live]');
  await page.waitForSelector('#empty:not([hidden])');
  await sendMany(again, 2, {});
  await until(async () => (await page.locator('#count').innerText()).startsWith('2 of 2'));
  await page.waitForSelector('#empty', { state: 'hidden' });
  await done();
  await again.stop();
});

test('where nothing shows up, the page says why, with counts and the flag to set', async () => {
  const silent = await startEngine('--level', 'none');
  const own = await startTap(silent.address);
  const { page, done } = await open(own, '?window=all');
  await ready(page);
  assert.match(await page.locator('#empty').innerText(), /No request has come through yet/);
  await sendMany(own, 4, {});
  await send(own, { more: { n: 2 } });
  const reason = page.locator('#empty [data-reason=level_off]');
  await reason.waitFor();
  await until(async () => (await reason.innerText()).startsWith('4 of 5'));
  assert.match(await reason.innerText(), /--per-request-spec-decode-metrics summary/);
  assert.match(await page.locator('#empty [data-reason=n_gt_1]').innerText(), /1 of 5/);
  assert.equal(await page.locator('#heatmap').isVisible(), false);
  await done();
  await own.stop();
  await silent.stop();
});

test('the page asks for the token, says when it is wrong, and keeps it for the tab', async () => {
  const file = join(folder, 'token');
  writeFileSync(file, 's3cret\n', { mode: 0o600 });
  const own = await startTap(engine.address, { more: ['--admin-token-file', file] });
  const { page, done } = await open(own, '', { may: /401/ });
  await page.waitForSelector('#token[open]');
  await page.fill('#token-field', 'wrong');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.getElementById('token').textContent.includes('refused'));
  await page.fill('#token-field', 's3cret');
  await page.keyboard.press('Enter');
  await ready(page);
  await page.reload();
  await ready(page);
  assert.equal(await page.locator('#token[open]').count(), 0);
  await done();
  await own.stop();
});

test('foreign names are text', async () => {
  const tag = '<img src=x onerror=alert(1)>';
  await send(tap, { tag, more: { model: 'm' } });
  const { page, done } = await open(tap, '?window=all');
  await ready(page);
  await page.waitForFunction((text) => document.getElementById('rows-body').textContent.includes(text), tag);
  assert.equal(await page.locator('img').count(), 0);
  await done();
});

test('ten thousand requests are scrolled and filtered in a twinkling', async () => {
  const [one] = (await api(tap, 'requests?limit=1')).requests;
  const prepare = (page) => page.route(/\/api\/v1\/requests\?/, (route) => {
    const query = new URL(route.request().url()).searchParams;
    const from = query.get('after') ? Number(query.get('after')) + 1 : 0;
    const limit = Math.min(Number(query.get('limit')), 12_000 - from);
    const requests = Array.from({ length: limit }, (_, index) => ({ ...one, id: String(from + index), tag: (from + index) % 2 ? 'odd' : 'even', ended_at: new Date(Date.parse(one.ended_at) - from - index).toISOString() }));
    return route.fulfill({ json: { requests, next: String(from + limit - 1), dropped: 0, per_step_dropped: 0 } });
  });
  const { page, done } = await open(tap, '?window=all', { prepare });
  await ready(page);
  await until(async () => page.evaluate(() => {
    const place = document.getElementById('rows');
    place.scrollTop = place.scrollHeight;
    return document.getElementById('count').textContent.startsWith('10,000 of 10,000');
  }), () => page.locator('#count').innerText(), 60_000);
  assert.ok(await page.locator('#rows-body tr').count() < 60, 'only the rows in sight are in the document');
  const measured = await page.evaluate(async () => {
    const place = document.getElementById('rows'); const field = document.getElementById('filter-q');
    const frame = () => new Promise((drawn) => requestAnimationFrame(() => drawn()));
    const best = async (act) => {
      const times = [];
      for (let turn = 0; turn < 15; turn += 1) {
        await frame();
        const began = performance.now();
        act(turn);
        document.body.getBoundingClientRect();
        times.push(performance.now() - began);
      }
      return Math.min(...times);
    };
    return {
      filter: await best((turn) => { field.value = turn % 2 ? 'odd' : 'even'; field.dispatchEvent(new Event('input', { bubbles: true })); }),
      scroll: await best((turn) => { place.scrollTop = turn * 8_000; place.dispatchEvent(new Event('scroll')); }),
    };
  });
  console.log(`10,000 requests: filter ${measured.filter.toFixed(1)} ms, scroll ${measured.scroll.toFixed(1)} ms (best of 15)`);
  assert.ok(measured.filter < 100 && measured.scroll < 100, JSON.stringify(measured));
  await page.waitForFunction(() => document.getElementById('count').textContent.startsWith('5,000 of 10,000'));
  await done();
});

test('nothing stands in the way of a screen reader, in light and dark, on a phone and with the drawer open', async () => {
  for (const { query, viewport, drawer } of [
    { query: '?window=all&theme=light', viewport: { width: 1440, height: 1000 } },
    { query: '?window=all&theme=dark&base=tag%3Dpoetry&other=tag%3Dcode', viewport: { width: 1440, height: 1000 } },
    { query: '?window=all', viewport: { width: 390, height: 844 } },
    { query: '?window=all', viewport: { width: 1024, height: 768 }, drawer: true },
  ]) {
    const { page, done } = await open(tap, query, { context: { viewport, bypassCSP: true } });
    await ready(page);
    await page.waitForSelector('#rows-body tr[data-id]');
    await page.waitForSelector('#facet-bars table');
    if (query.includes('base')) await page.waitForSelector('#comparison table');
    if (drawer) { await page.locator('#rows-body button').first().click(); await page.waitForSelector('#drawer[open] h3'); }
    await page.addScriptTag({ path: axeSource });
    const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
    const told = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => `${node.html.slice(0, 160)} ${node.failureSummary}`).join('\n  ')}`);
    assert.deepEqual(told, [], query);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 0, `${wide} px too wide at ${viewport.width}`);
    await done();
  }
});
