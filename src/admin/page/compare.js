// Runs, and two of them (or two windows, or two tags) side by side, by the tap's own comparison.

import { byId, h, show } from './dom.js';
import { NONE, ago, fixed, percent, signed, whole } from './format.js';
import { json } from './session.js';
import { change, filter, view } from './view.js';

const WHY = { started: 'the process started', asked: 'asked for', engine_changed: 'began by itself' };
const VERDICTS = { higher: 'higher', lower: 'lower', no_evidence: 'no evidence', too_few: 'too few', not_comparable: 'not comparable', unknown: 'unknown' };
const NAMES = { spec_decode_token_weighted_acceptance_length: 'Acceptance length', spec_decode_overall_draft_acceptance_rate: 'Draft acceptance rate', inter_token_latency: 'Inter-token latency' };
let latest = null;
let turn = 0;
let asked = '';

export function update(state) {
  latest = state;
  runs(state);
  choices(state);
  if (view.base && view.other && asked !== `${view.base} ${view.other}`) compare();
}

function runs(state) {
  const now = new Date(state.now).getTime();
  const all = state.runs ?? [];
  const fresh = show(byId('runs'), h('ol', { class: 'runs' }, all.slice(0, 6).map((run, index) => h('li', { 'data-run': run.name },
    h('b', {}, run.name), h('span', { class: 'quiet' }, ` ${WHY[run.why] ?? run.why}, ${ago(run.start, now)}, n = ${whole(run.n)}`),
    run.change ? h('p', { class: 'changed' }, run.change) : null,
    all[index + 1] ? h('button', { type: 'button', class: 'link', 'data-pair': index, 'data-key': `pair-${run.name}` }, 'compare with the run before') : null))));
  if (!fresh) return;
  for (const button of byId('runs').querySelectorAll('[data-pair]')) {
    button.addEventListener('click', () => {
      const [other, base] = [0, 1].map((step) => latest.runs[Number(button.dataset.pair) + step].name);
      change({ base: new URLSearchParams({ run: base }).toString(), other: new URLSearchParams({ run: other }).toString() });
      choices(latest);
      compare();
      byId('compare-panel').scrollIntoView({ block: 'nearest' });
    });
  }
}

function build() {
  const side = (name, text) => h('label', { class: 'choice' }, h('span', {}, text), h('select', { id: `choose-${name}`, onchange: (event) => { change({ [name]: event.target.value }); compare(); } }));
  byId('compare').append(h('div', { class: 'row' }, side('base', 'base'), side('other', 'with'), h('span', { id: 'compare-says', class: 'quiet', role: 'status' })), h('div', { id: 'comparison' }));
}

function choices(state) {
  if (!byId('choose-base')) build();
  const part = (values) => new URLSearchParams(values).toString();
  const groups = [
    ['Runs', (state.runs ?? []).map((run) => [part({ run: run.name }), run.name])],
    ['Windows', ['1m', '5m', '15m', '1h', 'all'].map((window) => [part({ window }), window === 'all' ? 'all' : `last ${window}`])],
    ['Tags', (state.known?.tags ?? []).map((tag) => [part({ tag }), tag])],
    ['Models', (state.known?.models ?? []).map((model) => [part({ model }), model])],
  ].filter(([, list]) => list.length > 0);
  for (const name of ['base', 'other']) {
    const select = byId(`choose-${name}`);
    if (document.activeElement === select) continue;
    show(select, h('option', { value: '' }, 'choose…'), groups.map(([label, list]) => h('optgroup', { label }, list.map(([value, text]) => h('option', { value }, text)))));
    if (select.value !== view[name]) select.value = view[name];
  }
}

// The filter of the page narrows both sides, where a side does not say otherwise.
function sideOf(part) {
  const all = new URLSearchParams(filter({ window: '' }));
  for (const [name, value] of new URLSearchParams(part)) all.set(name, value);
  return all.toString();
}

async function compare() {
  const mine = ++turn;
  asked = `${view.base} ${view.other}`;
  if (!view.base || !view.other) { show(byId('comparison')); byId('compare-says').textContent = ''; return; }
  byId('compare-says').textContent = 'counting…';
  try {
    const found = await json(`api/v1/compare?${new URLSearchParams({ base: sideOf(view.base), other: sideOf(view.other) })}`);
    if (mine !== turn) return;
    byId('compare-says').textContent = '';
    show(byId('comparison'), table(found));
  } catch (error) { if (mine === turn) byId('compare-says').textContent = error.message; }
}

const value = (it, number) => (number === null || number === undefined ? NONE : it.unit === '%' ? `${fixed(number, 1)} %` : it.unit === 'ms' ? `${fixed(number, 2)} ms` : it.figure === 'survival' ? percent(number) : fixed(number));

function row(title, it) {
  const percentage = it.figure === 'survival';
  const text = (number) => (percentage ? `${signed(100 * number, 1)} pp` : it.unit === '%' ? `${signed(number, 1)} pp` : signed(number));
  return h('tr', { 'data-figure': it.figure }, h('th', { scope: 'row' }, title), h('td', {}, value(it, it.base)), h('td', {}, value(it, it.other)),
    h('td', {}, it.difference === null || it.difference === undefined ? NONE : text(it.difference), it.interval ? h('span', { class: 'note' }, ` ${text(it.interval.low)} to ${text(it.interval.high)}`) : null),
    h('td', {}, h('span', { class: `verdict ${it.verdict}`, title: it.why }, VERDICTS[it.verdict] ?? it.verdict)), h('td', { class: 'quiet' }, `${whole(it.n_base)} / ${whole(it.n_other)}`));
}

function table({ base, others }) {
  const [{ run, differences, positions, categories, speed_up: speed }] = others;
  const head = (title) => h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, title), ['base', 'with', 'difference', 'verdict', 'n'].map((it) => h('th', { scope: 'col' }, it))));
  return [
    speed ? h('p', { class: 'headline' }, 'Tokens come ', h('b', {}, `${fixed(speed.value)}×`), ' as fast as in the base', speed.interval ? h('span', { class: 'note' }, ` (${fixed(speed.interval.low)} to ${fixed(speed.interval.high)})`) : null, '.') : null,
    h('p', { class: 'note' }, `base: ${whole(base.n)} requests${base.k.length ? `, k = ${base.k.join(', ')}` : ''}; with: ${whole(run.n)} requests${run.k.length ? `, k = ${run.k.join(', ')}` : ''}. Intervals hold together at 95 %.`),
    h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Comparison' },
      h('table', {}, head('Figure'), h('tbody', {}, differences.map((it) => row(NAMES[it.figure] ?? it.figure, it)), positions.map((it) => row(`Survival, draft ${it.position + 1}`, it)),
        categories.filter(({ tag, differences: [first] }) => tag !== null && first && first.verdict !== 'unknown').flatMap(({ tag, differences: all }) => all.slice(0, 1).map((it) => row(`Length of ${tag}`, it))))))];
}

export { compare };
