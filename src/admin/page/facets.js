// Acceptance by a facet, and along the reply.

import { byId, h, s, show } from './dom.js';
import { FEW_REQUESTS, band, fixed, whole } from './format.js';
import { json } from './session.js';
import { change, filter, view } from './view.js';

const FACETS = [
  ['context', 'context length'], ['prompt', 'prompt length'], ['cached', 'cached share of the prompt'], ['temperature', 'temperature'],
  ['format', 'output format'], ['reasoning', 'reasoning share'], ['stream', 'streamed'], ['concurrency', 'concurrency'], ['model', 'model'], ['route', 'route'],
];
const PERIOD = 10_000;
let asked = '';
let at = 0;

function build() {
  byId('facets').append(
    h('label', { class: 'choice' }, h('span', {}, 'by'), h('select', { id: 'choose-facet', onchange: (event) => change({ facet: event.target.value }) }, FACETS.map(([value, text]) => h('option', { value }, text)))),
    h('div', { id: 'facet-bars' }, h('p', { class: 'quiet' }, 'counting…')));
}

// Figures by facet are counted by the tap when they are asked for: every ten seconds, and at once after a change.
export async function update(state) {
  if (!byId('choose-facet')) build();
  reply(state);
  byId('choose-facet').value = view.facet;
  const wanted = filter({ by: view.facet });
  if (document.hidden || (wanted === asked && Date.now() - at < PERIOD)) return;
  asked = wanted;
  at = Date.now();
  try {
    const summary = await json(`api/v1/summary?${wanted}`);
    if (wanted === asked) show(byId('facet-bars'), bars(summary.groups));
  } catch { at = 0; }
}

function bars(groups) {
  const rows = groups.map((group) => ({ name: group.key[view.facet], metric: group.metrics?.spec_decode_token_weighted_acceptance_length })).filter(({ metric }) => metric);
  if (rows.length === 0) return h('p', { class: 'quiet' }, 'No request in this selection told its numbers.');
  const most = Math.max(...rows.map(({ metric }) => metric.interval?.high ?? metric.avg));
  const at = (length) => (100 * length) / most;
  return h('table', { class: 'bars' }, h('caption', { class: 'sr' }, 'Acceptance length by facet'),
    h('thead', { class: 'sr' }, h('tr', {}, h('th', { scope: 'col' }, 'value'), h('th', { scope: 'col' }, 'course'), h('th', { scope: 'col' }, 'length'), h('th', { scope: 'col' }, 'n'))),
    h('tbody', {}, rows.map(({ name, metric }) => h('tr', { class: metric.n < FEW_REQUESTS ? 'few' : null },
      h('th', { scope: 'row' }, band(name)),
      h('td', { class: 'wide' }, s('svg', { viewBox: '0 0 100 10', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
        s('rect', { x: 0, y: 1.5, height: 7, width: at(metric.avg).toFixed(2), class: 'bar' }),
        metric.interval ? s('rect', { x: at(metric.interval.low).toFixed(2), width: Math.max(0.4, at(metric.interval.high) - at(metric.interval.low)).toFixed(2), y: 4, height: 2, class: 'spread' }) : null)),
      h('td', {}, fixed(metric.avg)), h('td', { class: 'quiet' }, `n = ${whole(metric.n)}`)))));
}

function reply(state) {
  const parts = state.summary.along_the_reply ?? [];
  if (parts.length === 0) {
    show(byId('reply'), h('p', { class: 'quiet' }, 'Needs steps in order: vLLM with ', h('code', {}, '--per-request-spec-decode-metrics detailed'), '.'));
    return;
  }
  const most = Math.max(...parts.map((it) => it.accepted_per_step), 0.01);
  show(byId('reply'), h('table', { class: 'bars' }, h('caption', { class: 'sr' }, 'Accepted drafts per step by the token at which the step began'),
    h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'from token'), h('th', { scope: 'col' }, h('span', { class: 'sr' }, 'drawn')), h('th', { scope: 'col', title: 'accepted drafts per step' }, 'per step'), h('th', { scope: 'col' }, 'steps'))),
    h('tbody', {}, parts.map((it) => h('tr', { class: it.n < FEW_REQUESTS ? 'few' : null }, h('th', { scope: 'row' }, it.from_token === it.to_token ? it.from_token : `${it.from_token}–${it.to_token}`),
      h('td', { class: 'wide' }, s('svg', { viewBox: '0 0 100 10', preserveAspectRatio: 'none', 'aria-hidden': 'true' }, s('rect', { x: 0, y: 1.5, height: 7, width: ((100 * it.accepted_per_step) / most).toFixed(2), class: 'bar' }))),
      h('td', {}, fixed(it.accepted_per_step)), h('td', { class: 'quiet' }, whole(it.steps)))))));
}
