// The row of key figures.

import { byId, h, show } from './dom.js';
import { FEW_REQUESTS, NONE, fixed, percent, signed, whole } from './format.js';
import { card } from './figures.js';
import { sparkline } from './mini.js';

const CARDS = [
  { name: 'length', title: 'Acceptance length', hint: 'tokens per verify step, the bonus token included', text: (v) => fixed(v), change: (v, b) => signed(v - b), better: 1 },
  { name: 'rate', title: 'Draft acceptance rate', hint: 'accepted / drafted tokens; falls with k by arithmetic', text: (v) => percent(v), change: (v, b) => `${signed(100 * (v - b), 1)} pp`, better: 1 },
  { name: 'share', title: 'Output from drafts', hint: 'accepted drafts / completion tokens', text: (v) => percent(v), change: (v, b) => `${signed(100 * (v - b), 1)} pp`, better: 1 },
  { name: 'waste', title: 'Wasted drafts', hint: 'rejected draft tokens per second', text: (v) => (v === null ? NONE : `${fixed(v, v < 10 ? 1 : 0)}/s`), change: (v, b) => `${signed(v - b, Math.abs(v - b) < 10 ? 1 : 0)}/s`, better: 0 },
  { name: 'told', title: 'Record share', hint: 'requests whose numbers the engine told', text: (v) => percent(v), change: (v, b) => `${signed(100 * (v - b), 1)} pp`, better: 1 },
];

function changeOf({ change, better }, { value, before, beforeN }) {
  if (value === null || value === undefined || before === null || before === undefined || beforeN < FEW_REQUESTS) return h('span', { class: 'change' }, 'nothing before to compare');
  const text = change(value, before);
  const moved = /[1-9]/.test(text);
  const good = better === 0 || !moved ? '' : (value - before) * better > 0 ? 'up' : 'down';
  return h('span', { class: `change ${good}` }, text, h('span', { class: 'note' }, ' against the window before'));
}

export function update(state) {
  const cards = CARDS.map((kind) => {
    const figure = card(state, kind.name);
    const few = figure.n < FEW_REQUESTS;
    const interval = figure.interval && kind.name === 'length' ? h('span', { class: 'note' }, ` ${fixed(figure.interval.low)}–${fixed(figure.interval.high)}`) : null;
    return h('article', { class: few ? 'card few' : 'card', 'data-figure': kind.name, title: kind.hint },
      h('h2', {}, kind.title),
      h('p', { class: 'value' }, h('b', { 'data-value': figure.value ?? '' }, kind.text(figure.value ?? null)), interval),
      sparkline(figure.course),
      h('p', { class: 'foot' }, changeOf(kind, figure)),
      h('p', { class: 'foot' }, `n = ${whole(figure.n)}`, few && figure.n > 0 ? ', too few to judge' : ''));
  });
  const active = state.tap.in_flight;
  const streams = h('article', { class: 'card', 'data-figure': 'active', title: 'requests under way on inference routes' },
    h('h2', {}, 'Active requests'), h('p', { class: 'value' }, h('b', { 'data-value': active }, whole(active))),
    sparkline(activeCourse(active)), h('p', { class: 'foot' }, h('span', { class: 'change' }, 'under way now')),
    h('p', { class: 'foot' }, `n = ${whole(state.summary.n.exchanges)} finished`));
  show(byId('stats'), cards, streams);
}

// The last minutes of it, as this page saw them.
const seen = [];
function activeCourse(active) {
  seen.push(active);
  if (seen.length > 120) seen.shift();
  return seen;
}
