// One request with every field, and its steps in order where the engine told them.

import { byId, h } from './dom.js';
import { fixed, percent, whole } from './format.js';
import { acceptanceOf, histogramOf } from './figures.js';
import { histogram, stepStrip } from './mini.js';
import { json } from './session.js';
import { change, view } from './view.js';

let back = null;

export function build() {
  const drawer = byId('drawer');
  drawer.addEventListener('close', () => {
    change({ request: '' });
    if (back) document.querySelector(`[data-key="${CSS.escape(back)}"]`)?.focus();
  });
  // A click beside it.
  drawer.addEventListener('click', (event) => { if (event.target === drawer) drawer.close(); });
}

export async function open(id) {
  back = id;
  change({ request: id });
  const drawer = byId('drawer');
  let content;
  try { content = show(await json(`api/v1/requests/${encodeURIComponent(id)}`)); } catch (error) { content = [h('h2', { id: 'drawer-title' }, 'Request'), h('p', { class: 'wrong' }, error.message)]; }
  if (view.request !== id) return;
  drawer.replaceChildren(h('button', { type: 'button', class: 'close', 'aria-label': 'Close', onclick: () => drawer.close() }, '✕'), ...content.flat(Infinity).filter(Boolean));
  if (!drawer.open) drawer.showModal();
}

function show(it) {
  const { length, rate, steps } = acceptanceOf(it);
  const said = h('span', { role: 'status', class: 'quiet' });
  const copy = async () => {
    const text = JSON.stringify(it, null, 1);
    try { await navigator.clipboard.writeText(text); said.textContent = ' copied'; } catch { said.textContent = ' the browser refused; select it below'; raw.open = true; }
  };
  const raw = h('details', {}, h('summary', {}, 'As JSON'), h('pre', { tabindex: 0 }, JSON.stringify(it, null, 1)));
  return [
    h('h2', { id: 'drawer-title' }, it.model ?? 'Request', it.tag ? h('span', { class: 'chip' }, it.tag) : null),
    h('p', { class: 'quiet' }, `${new Date(it.ended_at).toLocaleString()} · ${it.outcome.replace('_', ' ')} · ${(it.acceptance ?? 'no numbers').replace('_', ' ')}${it.reason ? ` (${it.reason})` : ''}`),
    h('dl', { class: 'facts' }, [['Length', fixed(length)], ['Rate', percent(rate)], ['Steps', whole(steps)], ['Tokens', whole(it.usage?.completion_tokens)]].map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value)))),
    (it.spec_decode_acceptance ?? []).map((record, index) => [
      h('h3', {}, (it.spec_decode_acceptance.length > 1 ? `Sequence ${index + 1}: ` : '') + 'steps by accepted drafts'),
      histogram(record.acceptance_histogram, 1 + Math.max(record.num_spec_tokens ?? 0, ...Object.keys(record.acceptance_histogram ?? {}).map(Number), 0), 220, 48),
      record.per_step_accepted ? [h('h3', {}, 'Steps in order'), h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Steps in order' }, stepStrip(record.per_step_accepted, record.per_step_drafted)), h('p', { class: 'legend' }, h('i', { class: 'key bar' }), ' accepted ', h('i', { class: 'key hollow' }), ' drafted and thrown away')] : null]),
    Object.keys(histogramOf(it)).length === 0 ? h('p', { class: 'quiet' }, 'No step of this request is known.') : null,
    h('h3', {}, 'Every field'), h('table', { class: 'fields' }, h('tbody', {}, fields(it).map(([name, value]) => h('tr', {}, h('th', { scope: 'row' }, name), h('td', {}, value))))),
    h('p', {}, h('button', { type: 'button', id: 'copy', onclick: copy }, 'Copy as JSON'), said), raw];
}

function fields(value, path = '') {
  if (Array.isArray(value) && value.every((it) => typeof it !== 'object')) return [[path, value.join(', ') || '–']];
  if (value === null || typeof value !== 'object') return [[path, value === null ? '–' : String(value)]];
  return Object.entries(value).flatMap(([name, it]) => fields(it, path ? `${path}.${name}` : name));
}
