// The table of requests. Only the rows in sight are in the document, so that ten thousand cost no more than twenty.

import { byId, h, show } from './dom.js';
import { NONE, clock, fixed, ms, percent, whole } from './format.js';
import { acceptanceOf, histogramOf } from './figures.js';
import { heading, sorted, turned } from './categories.js';
import { slice } from './heatmap.js';
import { histogram } from './mini.js';
import { json } from './session.js';
import { change, view } from './view.js';

const MOST = 10_000; const PAGE = 1_000; const ROW = 30; const AROUND = 4;
const OUTCOMES = ['complete', 'error_status', 'error_event', 'truncated', 'cancelled'];
const ACCEPTANCES = ['recorded', 'zero_step', 'absent', 'malformed', 'ambiguous', 'unobserved'];

const COLUMNS = [
  { name: 'ended_at', title: 'Time', of: (row) => row.at, text: (row) => clock(row.at) },
  { name: 'model', title: 'Model', of: (row) => row.it.model ?? '', text: (row) => row.it.model ?? NONE },
  { name: 'tag', title: 'Tag', of: (row) => row.it.tag ?? '', text: (row) => row.it.tag ?? NONE },
  { name: 'outcome', title: 'Outcome', of: (row) => row.it.outcome, text: (row) => h('span', { class: `outcome ${row.it.outcome}` }, row.it.outcome.replace('_', ' ')) },
  { name: 'acceptance', title: 'Numbers', of: (row) => row.it.acceptance ?? '', text: (row) => (row.it.reason ? h('span', { title: row.it.reason }, row.it.reason) : (row.it.acceptance ?? NONE).replace('_', ' ')) },
  { name: 'tokens', title: 'Tokens', of: (row) => row.it.usage?.completion_tokens, text: (row) => whole(row.it.usage?.completion_tokens), number: true },
  { name: 'steps', title: 'Steps', of: (row) => row.acceptance.steps, text: (row) => whole(row.acceptance.steps), number: true },
  { name: 'length', title: 'Length', of: (row) => row.acceptance.length, text: (row) => fixed(row.acceptance.length), number: true },
  { name: 'rate', title: 'Rate', of: (row) => row.acceptance.rate, text: (row) => percent(row.acceptance.rate), number: true },
  { name: 'histogram', title: 'Steps by accepted', of: (row) => row.acceptance.length, text: (row) => histogram(row.histogram, row.bars) },
  { name: 'ttft', title: 'TTFT', of: (row) => row.it.timing?.time_to_first_token_ms, text: (row) => ms(row.it.timing?.time_to_first_token_ms), number: true },
  { name: 'itl', title: 'ITL', of: (row) => row.it.timing?.inter_token_latency_ms, text: (row) => ms(row.it.timing?.inter_token_latency_ms), number: true },
  { name: 'latency', title: 'Latency', of: (row) => row.it.timing?.request_latency_ms, text: (row) => ms(row.it.timing?.request_latency_ms), number: true, extra: true },
  { name: 'prompt', title: 'Prompt', of: (row) => row.it.usage?.prompt_tokens, text: (row) => whole(row.it.usage?.prompt_tokens), number: true, extra: true },
  { name: 'in_flight', title: 'In flight', of: (row) => row.it.in_flight, text: (row) => whole(row.it.in_flight), number: true, extra: true },
  { name: 'route', title: 'Route', of: (row) => row.it.route, text: (row) => row.it.route, extra: true },
  { name: 'run', title: 'Run', of: (row) => row.it.run ?? '', text: (row) => row.it.run ?? NONE, extra: true },
  { name: 'id', title: 'Request id', of: (row) => row.it.request_id ?? row.it.id, text: (row) => row.it.request_id ?? row.it.id, extra: true },
];

let rows = []; // Newest first.
let ids = new Set();
let found = []; // What the filters leave, in order.
let next = null; // Where older ones begin; null: none are kept.
let skipped = 0;
let version = 0; // Of what is found and of the columns.
let loading = false; let turn = 0; let onOpen = () => {}; let onRows = () => {};

export const all = () => found.map(({ it }) => it);
export const loaded = () => rows.length;

function rowOf(it) {
  const counts = histogramOf(it);
  const k = Math.max(0, ...(it.spec_decode_acceptance ?? []).map((record) => record.num_spec_tokens ?? 0), ...Object.keys(counts).map(Number));
  return { it, at: Date.parse(it.ended_at), acceptance: acceptanceOf(it), histogram: counts, bars: k + 1, text: [it.model, it.tag, it.reason, it.id, it.request_id, it.x_request_id, it.trace_id, it.outcome, it.acceptance, it.run, ...(it.finish_reasons ?? [])].join(' ').toLowerCase() };
}

export function build(open, changed) {
  onOpen = open;
  onRows = changed;
  const select = (name, title, values) => h('label', { class: 'choice' }, h('span', {}, title), h('select', { id: `filter-${name}`, onchange: (event) => change({ [name]: event.target.value }) }, h('option', { value: '' }, 'all'), values.map((value) => h('option', { value }, value.replace('_', ' ')))));
  byId('requests').append(
    h('div', { class: 'row' },
      h('label', { class: 'choice grow' }, h('span', {}, 'find'), h('input', { id: 'filter-q', type: 'search', placeholder: 'model, tag, id, reason …', oninput: (event) => change({ q: event.target.value }) })),
      select('outcome', 'outcome', OUTCOMES), select('acceptance', 'numbers', ACCEPTANCES),
      h('details', { class: 'menu' }, h('summary', {}, 'Columns'), h('div', { id: 'columns' })),
      h('button', { type: 'button', id: 'export' , onclick: download }, 'Export'), h('span', { id: 'count', class: 'quiet', role: 'status' })),
    h('div', { id: 'rows', class: 'scroll rows', tabindex: 0, role: 'region', 'aria-label': 'Requests, newest first' }, h('table', {}, h('thead', { id: 'rows-head' }), h('tbody', { id: 'rows-body' }))));
  byId('rows').addEventListener('scroll', () => { drawRows(); if (atEnd()) older(); }, { passive: true });
  byId('rows-body').addEventListener('click', (event) => { const id = event.target.closest('tr')?.dataset.id; if (id) onOpen(id); });
  byId('rows-body').addEventListener('keydown', (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const row = event.target.closest('tr');
    if (!step || !row) return;
    event.preventDefault();
    const index = found.findIndex(({ it }) => it.id === row.dataset.id) + step;
    if (index < 0 || index >= found.length) return;
    const place = byId('rows');
    const top = index * ROW;
    if (top < place.scrollTop) place.scrollTop = top;
    if (top + 2 * ROW > place.scrollTop + place.clientHeight) place.scrollTop = top + 2 * ROW - place.clientHeight;
    drawRows();
    byId('rows-body').querySelector(`tr[data-id="${CSS.escape(found[index].it.id)}"] button`)?.focus();
  });
}

const atEnd = () => { const place = byId('rows'); return place.scrollTop + place.clientHeight > place.scrollHeight - 10 * ROW; };

// Begins anew with the newest ones that are kept.
export async function load() {
  turn += 1;
  rows = []; ids = new Set(); next = null; skipped = 0; loading = false;
  await older(true);
}

export async function older(first = false) {
  if (loading || (!first && (next === null || rows.length >= MOST))) return;
  loading = true;
  const mine = turn;
  const query = new URLSearchParams({ limit: first ? 300 : PAGE });
  for (const name of ['model', 'tag']) if (view[name]) query.set(name, view[name]);
  if (next) query.set('after', next);
  try {
    const page = await json(`api/v1/requests?${query}`);
    if (mine !== turn) return;
    const fresh = page.requests.filter((it) => !ids.has(it.id) && inSelection(it));
    fresh.forEach((it) => ids.add(it.id));
    rows = rows.concat(fresh.map(rowOf)).slice(0, MOST);
    next = page.next;
  } catch { /* The feed says that the tap is away. */ } finally { if (mine === turn) loading = false; }
  if (mine !== turn) return;
  filterAndDraw();
  const wanted = slice();
  if (next && wanted && (rows.at(-1)?.at ?? 0) / 1000 >= wanted.from) await older();
}

const inSelection = (it) => (!view.run || it.run === view.run) && (!view.engine || it.spec_decode_acceptance?.[0]?.engine === view.engine);

// Finished ones, newest first.
export function add(fresh, left) {
  skipped += left;
  const news = fresh.filter((it) => !ids.has(it.id));
  if (news.length === 0) return;
  news.forEach((it) => ids.add(it.id));
  const place = byId('rows');
  const before = found.length;
  rows = news.map(rowOf).concat(rows);
  for (const gone of rows.splice(MOST)) ids.delete(gone.it.id);
  filterAndDraw();
  // Whoever reads further down keeps their place.
  if (place.scrollTop > 0 && view.sort === '-ended_at') { place.scrollTop += (found.length - before) * ROW; drawRows(); }
}

export function filterAndDraw() {
  const words = view.q.toLowerCase().split(/\s+/).filter(Boolean);
  const part = slice();
  found = rows.filter((row) => (!view.outcome || row.it.outcome === view.outcome) && (!view.acceptance || row.it.acceptance === view.acceptance)
    && words.every((word) => row.text.includes(word))
    && (!part || (row.at >= part.from * 1000 && row.at < part.to * 1000 && row.histogram[part.accepted] > 0)));
  if (view.sort !== '-ended_at') found = sorted(found, COLUMNS, view.sort);
  for (const name of ['outcome', 'acceptance', 'q']) { const field = byId(`filter-${name}`); if (field.value !== view[name]) field.value = view[name]; }
  byId('count').textContent = `${whole(found.length)} of ${whole(rows.length)}${next ? ', older ones as you scroll' : ''}${skipped ? `, ${whole(skipped)} passed too fast to list` : ''}`;
  draw();
  onRows();
}

const chosen = () => {
  const names = view.columns ? view.columns.split(',') : null;
  return COLUMNS.filter((column) => (names ? names.includes(column.name) : !column.extra) || column.name === 'ended_at');
};

function draw() {
  const columns = chosen();
  if (show(byId('rows-head'), h('tr', {}, columns.map((column) => heading(column, view.sort)))))
    for (const button of byId('rows-head').querySelectorAll('[data-sort]')) button.addEventListener('click', () => change({ sort: turned(view.sort, button.dataset.sort) }));
  menu();
  byId('rows').firstElementChild.setAttribute('aria-rowcount', found.length + 1);
  version += 1;
  drawRows();
}

// The rows in sight, and a few around them.
function drawRows() {
  const place = byId('rows'); const body = byId('rows-body');
  const first = Math.max(0, Math.floor(place.scrollTop / ROW) - AROUND);
  const last = Math.min(found.length, first + Math.ceil(place.clientHeight / ROW) + 2 * AROUND);
  const key = `${version} ${first} ${last}`;
  if (body.dataset.shown === key) return;
  body.dataset.shown = key;
  const columns = chosen();
  const space = (count) => (count > 0 ? [h('tr', { 'aria-hidden': 'true', class: 'space' }, h('td', { colspan: columns.length, height: count * ROW }))] : []);
  const focused = body.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  if (found.length === 0) body.replaceChildren(h('tr', {}, h('td', { colspan: columns.length, class: 'quiet' }, rows.length === 0 ? 'No request is kept in this selection.' : 'No request passes the filters.')));
  else body.replaceChildren(...space(first), ...found.slice(first, last).map((row, index) => rowInSight(row, first + index, columns)), ...space(found.length - last));
  if (focused) body.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
}

const rowInSight = (row, index, columns) => h('tr', { 'data-id': row.it.id, 'aria-rowindex': index + 2, class: view.request === row.it.id ? 'open' : null },
  columns.map((column) => (column.name === 'ended_at'
    ? h('td', {}, h('button', { type: 'button', class: 'link', 'data-key': row.it.id, 'aria-label': `Open the request of ${clock(row.at)}` }, column.text(row)))
    : h('td', { class: column.number ? 'number' : null }, column.text(row)))));

function menu() {
  const names = chosen().map(({ name }) => name);
  const fresh = show(byId('columns'), COLUMNS.slice(1).map((column) => h('label', {}, h('input', { type: 'checkbox', value: column.name, 'data-key': `column-${column.name}`, 'data-on': names.includes(column.name) ? '1' : '0' }), ` ${column.title}`)));
  if (!fresh) return;
  for (const box of byId('columns').querySelectorAll('input')) {
    box.checked = box.dataset.on === '1';
    box.addEventListener('change', () => {
      const now = new Set(chosen().map(({ name }) => name));
      if (box.checked) now.add(box.value); else now.delete(box.value);
      change({ columns: COLUMNS.map(({ name }) => name).filter((name) => now.has(name)).join(',') });
    });
  }
}

function download() {
  const text = all().map((it) => JSON.stringify(it)).join('\n');
  const url = URL.createObjectURL(new Blob([`${text}\n`], { type: 'application/x-ndjson' }));
  h('a', { href: url, download: 'spectap-requests.jsonl' }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
