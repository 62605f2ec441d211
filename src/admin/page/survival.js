// Survival by draft position, and what another depth would give.

import { byId, h, s, show } from './dom.js';
import { fixed, percent, signed, whole } from './format.js';
import { whatIf } from './figures.js';
import { change, view } from './view.js';

const WIDTH = 380; const HEIGHT = 190; const LEFT = 38; const BOTTOM = 26; const TOP = 10;
let latest = null;
let built = false;

function build() {
  const place = byId('survival');
  place.append(h('div', { id: 'curve' }), h('div', { id: 'what-if', class: 'what-if' },
    h('div', { class: 'sliders' },
      h('label', { for: 'depth' }, 'What if k were ', h('output', { id: 'depth-value', for: 'depth' })), h('input', { id: 'depth', type: 'range', min: 1, step: 1 }),
      h('label', { for: 'cost' }, 'Cost of a draft / a step'), h('input', { id: 'cost', type: 'number', min: 0, max: 2, step: 0.01, placeholder: 'unknown' })),
    h('div', { id: 'what-if-says' })));
  byId('depth').addEventListener('input', (event) => change({ depth: event.target.value }));
  byId('cost').addEventListener('input', (event) => change({ cost: event.target.value }));
  const drag = (event) => {
    if (event.buttons !== 1 || !latest?.summary.advice?.depths?.length) return;
    const box = byId('curve').querySelector('svg').getBoundingClientRect();
    const k = latest.summary.advice.depths.length;
    const x = ((event.clientX - box.left) / box.width) * WIDTH;
    change({ depth: String(Math.min(k, Math.max(1, Math.round(((x - LEFT) / (WIDTH - LEFT - 8)) * k + 0.5)))) });
  };
  byId('curve').addEventListener('pointerdown', drag);
  byId('curve').addEventListener('pointermove', drag);
  built = true;
}

export function update(state) {
  if (!built) build();
  latest = state;
  const { survival = [], advice } = state.summary;
  const k = advice?.depths?.length ?? 0;
  const depth = k ? Math.min(k, Math.max(1, Number(view.depth) || k)) : null;
  show(byId('curve'), curve(survival, Math.max(survival.length, k), depth));
  const slider = byId('depth');
  slider.disabled = k === 0;
  slider.max = Math.max(k, 1);
  slider.value = depth ?? 1;
  byId('depth-value').textContent = depth ?? '–';
  if (document.activeElement !== byId('cost') && byId('cost').value !== view.cost) byId('cost').value = view.cost;
  show(byId('what-if-says'), says(state.summary, depth));
}

function curve(survival, positions, depth) {
  if (survival.length === 0) return h('p', { class: 'quiet' }, 'No record tells how many drafts each step accepted.');
  const wide = (WIDTH - LEFT - 8) / positions;
  const x = (position) => LEFT + (position + 0.5) * wide;
  const y = (share) => HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP);
  const parts = [0, 0.25, 0.5, 0.75, 1].map((share) => [
    s('line', { x1: LEFT, x2: WIDTH - 8, y1: y(share), y2: y(share), class: 'grid' }),
    s('text', { x: LEFT - 6, y: y(share) + 4, class: 'axis end' }, `${100 * share} %`)]);
  for (const { position, share, interval, n, lower_bound: bound } of survival) {
    const out = depth !== null && position >= depth;
    parts.push(s('rect', { x: x(position) - wide * 0.32, width: wide * 0.64, y: y(share), height: y(0) - y(share), class: out ? 'bar out' : 'bar' }, s('title', {}, `position ${position}: ${percent(share)} of ${whole(n)} steps${bound ? ' or more' : ''}`)));
    if (interval) parts.push(s('path', { class: 'whisker', d: `M${x(position)} ${y(interval.low)}V${y(interval.high)}M${x(position) - 4} ${y(interval.low)}h8M${x(position) - 4} ${y(interval.high)}h8` }));
    if (positions <= 16 || position % 2 === 0) parts.push(s('text', { x: x(position), y: HEIGHT - 9, class: 'axis middle' }, String(position + 1)));
  }
  const known = survival.filter((it) => it.conditional !== null && it.conditional !== undefined);
  parts.push(s('polyline', { class: 'conditional', points: known.map((it) => `${x(it.position).toFixed(1)},${y(it.conditional).toFixed(1)}`).join(' ') }));
  for (const it of known) parts.push(s('circle', { class: 'dot', cx: x(it.position), cy: y(it.conditional), r: 3 }, s('title', {}, `position ${it.position}: ${percent(it.conditional)} of the ${whole(it.conditional_n)} steps that got there`)));
  if (depth !== null) {
    const at = LEFT + depth * wide;
    parts.push(s('line', { class: 'cursor', x1: at, x2: at, y1: TOP - 4, y2: HEIGHT - BOTTOM }), s('circle', { class: 'handle', cx: at, cy: TOP, r: 5 }));
  }
  const said = survival.map((it) => `${it.position + 1}: ${percent(it.share)}, conditional ${percent(it.conditional)}`).join('; ');
  const bound = survival.some((it) => it.lower_bound);
  return [
    s('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: 'chart', role: 'img', 'aria-label': `Share of steps that accepted the draft, by position: ${said}` }, parts),
    h('p', { class: 'legend' }, h('i', { class: 'key bar' }), ' reached and accepted (95 %)  ', h('i', { class: 'key line' }), ' among steps that got there',
      h('span', { class: 'note' }, bound ? ' The widths of some steps are unknown: the shares are at least these.' : ' Rising conditional acceptance is selection: only easy text comes so far.'))];
}

function says({ advice }, depth) {
  if (!advice) return h('p', { class: 'quiet' }, 'No advice yet.');
  if (depth === null) return h('p', { class: 'quiet' }, advice.text);
  const given = view.cost !== '' && Number(view.cost) >= 0 ? Number(view.cost) : null;
  const cost = given ?? advice.draft_cost ?? null;
  const found = whatIf(advice, depth, cost);
  const now = whatIf(advice, advice.depths.length, cost);
  const range = (low, high, text) => (high !== null && high !== undefined && text(low) !== text(high) ? `${text(low)} – ${text(high)}` : `${high === null || high === undefined ? '≥ ' : ''}${text(low)}`);
  const middle = (it) => (it.low + (it.high ?? it.low)) / 2;
  return [
    h('dl', { class: 'facts' },
      h('div', {}, h('dt', {}, 'Expected length'), h('dd', { id: 'what-if-length', 'data-low': found.low, 'data-high': found.high ?? '' }, range(found.low, found.high, (v) => fixed(v)), depth === advice.depths.length ? '' : h('span', { class: 'note' }, ` ${signed(middle(found) - middle(now))} `))),
      h('div', {}, h('dt', {}, 'Wasted per token'), h('dd', {}, range(Math.min(found.wasted.low, found.wasted.high ?? found.wasted.low), Math.max(found.wasted.low, found.wasted.high ?? found.wasted.low), (v) => fixed(v)))),
      h('div', {}, h('dt', {}, 'Speed-up'), h('dd', { id: 'what-if-speed' }, found.speedUp ? range(found.speedUp.low, found.speedUp.high, (v) => `${fixed(v)}×`) : 'needs a cost'))),
    h('p', { class: 'note' }, found.estimate ? 'Estimate. ' : 'Observed. ', given === null && advice.draft_cost ? `Draft cost ${fixed(advice.draft_cost, 3)}, measured. ` : '', advice.text)];
}
