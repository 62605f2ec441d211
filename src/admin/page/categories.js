// The category matrix: one row a tag, sortable.

import { byId, h, show } from './dom.js';
import { FEW_REQUESTS, NONE, fixed, percent, whole } from './format.js';
import { histogram } from './mini.js';
import { change, view } from './view.js';

const length = (group) => group.metrics?.spec_decode_acceptance_length;
const pooled = (group) => group.metrics?.spec_decode_token_weighted_acceptance_length;
const COLUMNS = [
  { name: 'tag', title: 'Tag', of: (group) => group.key.tag ?? '', text: (group) => group.key.tag ?? h('i', {}, 'none') },
  { name: 'length', title: 'Length', of: (group) => pooled(group)?.avg, text: (group) => fixed(pooled(group)?.avg), hint: 'tokens per step over all steps' },
  { name: 'rate', title: 'Rate', of: (group) => group.metrics?.spec_decode_overall_draft_acceptance_rate?.avg, text: (group) => percent((group.metrics?.spec_decode_overall_draft_acceptance_rate?.avg ?? NaN) / 100) },
  { name: 'n', title: 'n', of: (group) => pooled(group)?.n ?? 0, text: (group) => whole(pooled(group)?.n ?? 0) },
  ...['p10', 'p50', 'p90'].map((name) => ({ name, title: name, of: (group) => length(group)?.[name], text: (group) => fixed(length(group)?.[name]), hint: 'length of a request' })),
];
let latest = null;

// Sorts by a column; a second time the other way round.
export const turned = (sort, name) => (sort === `-${name}` ? name : `-${name}`);

export function heading(column, sort, onsort) {
  const way = sort === column.name ? 'ascending' : sort === `-${column.name}` ? 'descending' : 'none';
  return h('th', { scope: 'col', 'aria-sort': way }, h('button', { type: 'button', title: column.hint, 'data-sort': column.name, 'data-key': `sort-${column.name}`, onclick: onsort }, column.title, h('span', { 'aria-hidden': 'true' }, { ascending: ' ▲', descending: ' ▼', none: '' }[way])));
}

export function sorted(rows, columns, sort) {
  const down = sort.startsWith('-');
  const column = columns.find((it) => it.name === sort.replace(/^-/, ''));
  if (!column) return rows;
  const keyed = rows.map((row) => ({ row, key: column.of(row) }));
  const none = (key) => key === null || key === undefined || Number.isNaN(key);
  keyed.sort((a, b) => {
    if (none(a.key) || none(b.key)) return Number(none(a.key)) - Number(none(b.key));
    const order = typeof a.key === 'string' ? a.key.localeCompare(b.key) : a.key - b.key;
    return down ? -order : order;
  });
  return keyed.map(({ row }) => row);
}

export function update(state) {
  latest = state;
  draw();
}

function draw() {
  const groups = latest.summary.groups ?? [];
  const bars = 1 + Math.max(0, ...groups.flatMap((group) => Object.keys(group.pooled_spec_decode_acceptance_histogram ?? {}).map(Number)));
  if (groups.length === 0 || (groups.length === 1 && !groups[0].key.tag)) {
    show(byId('categories'), h('p', { class: 'quiet' }, 'No request carries a tag. Send ', h('code', {}, 'X-Spectap-Tag: code'), ' with a request, or name another header with ', h('code', {}, '--tag-header'), '.'));
    return;
  }
  const rows = sorted(groups, COLUMNS, view.by.startsWith('-') || view.by === 'tag' ? view.by : `-${view.by}`);
  const sort = view.by.startsWith('-') || view.by === 'tag' ? view.by : `-${view.by}`;
  const lengths = groups.map((group) => pooled(group)?.avg).filter(Number.isFinite);
  const low = Math.min(...lengths); const high = Math.max(...lengths);
  const fresh = show(byId('categories'), h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Categories' },
    h('table', {}, h('thead', {}, h('tr', {}, COLUMNS.map((column) => heading(column, sort)), h('th', { scope: 'col' }, 'Steps'))),
      h('tbody', {}, rows.map((group) => {
        const n = pooled(group)?.n ?? 0;
        return h('tr', { class: n < FEW_REQUESTS ? 'few' : null, 'data-tag': group.key.tag ?? '' },
          COLUMNS.map((column) => {
            if (column.name === 'tag') return h('th', { scope: 'row' }, group.key.tag ? h('button', { type: 'button', class: 'link', 'data-choose': group.key.tag, 'data-key': `tag-${group.key.tag}`, title: 'show this tag only' }, group.key.tag) : column.text(group));
            const shade = column.name === 'length' && high > low ? Math.round(((pooled(group)?.avg - low) / (high - low)) * 4) : null;
            return h('td', { 'data-column': column.name, class: shade === null || Number.isNaN(shade) ? null : `shade-${shade}` }, column.text(group) ?? NONE);
          }), h('td', {}, histogram(group.pooled_spec_decode_acceptance_histogram, bars)));
      })))));
  if (!fresh) return;
  for (const button of byId('categories').querySelectorAll('[data-sort]')) button.addEventListener('click', () => { change({ by: turned(sort, button.dataset.sort) }); draw(); });
  for (const button of byId('categories').querySelectorAll('[data-choose]')) button.addEventListener('click', () => change({ tag: button.dataset.choose }));
}
