// What a person should know about the figures; and, where there are none, why.

import { byId, h, show } from './dom.js';
import { isEmpty } from './figures.js';
import { percent, whole } from './format.js';
import { REASONS, REMEDIES } from './reasons.js';
import { view } from './view.js';

const code = (parts) => parts.map((part, index) => (index % 2 ? h('code', {}, part) : part));

export function update(state) {
  const { findings = [] } = state.summary;
  byId('findings').hidden = findings.length === 0;
  show(byId('findings'), h('ul', {}, findings.map((it) => h('li', { 'data-code': it.code }, h('b', {}, it.code.replaceAll('_', ' ')), ` ${it.text}`))));
  const empty = isEmpty(state);
  byId('empty').hidden = !empty;
  for (const part of document.querySelectorAll('[data-needs-records]')) part.hidden = empty;
  if (empty) show(byId('empty'), why(state));
}

function why(state) {
  const { n, reasons = {} } = state.summary;
  const title = (text) => h('h2', { id: 'empty-title' }, text);
  const narrowed = [['model', view.model], ['engine', view.engine], ['tag', view.tag], ['run', view.run]].filter(([, value]) => value);
  if (n.exchanges === 0) {
    return [title(state.tap.in_flight > 0 ? 'The first requests are under way' : 'No request has come through yet'),
      h('p', {}, state.tap.kept > 0
        ? `No request on an inference route ended with a 2xx status in this selection (${[`window ${view.window}`, ...narrowed.map(([name, value]) => `${name} ${value}`)].join(', ')}). Take a longer window or a wider selection.`
        : 'Point clients at the data port instead of the engine; nothing else about them changes.'),
      h('p', { class: 'quiet' }, `${whole(state.tap.kept)} requests are kept, ${whole(state.tap.in_flight)} are under way.`)];
  }
  const all = Object.entries(reasons).flatMap(([acceptance, counts]) => Object.entries(counts).map(([reason, count]) => ({ acceptance, reason, count }))).sort((a, b) => b.count - a.count);
  const items = all.map(({ reason, count }) => h('li', { 'data-reason': reason },
    h('b', {}, `${whole(count)} of ${whole(n.exchanges)} `), `requests ${REASONS[reason] ?? reason} `, h('code', {}, reason), '.',
    (REMEDIES[reason] ?? []).map((parts) => h('p', { class: 'remedy' }, code(parts)))));
  if (n.zero_step > 0) items.push(h('li', {}, h('b', {}, `${whole(n.zero_step)} of ${whole(n.exchanges)} `), 'requests told their numbers, but no step drafted anything: the drafter never got to run.'));
  return [title('Requests come through, but none tells how its drafts fared'),
    h('p', {}, `${whole(n.exchanges)} requests in this selection, record share ${percent(state.summary.record_share)}. This is why:`), h('ul', { class: 'reasons' }, items)];
}
