// The controls in the page's head: what to show, pause, theme, and the beginning of a run.

import { byId, h, show } from './dom.js';
import { json } from './session.js';
import { change, view } from './view.js';

const WINDOWS = [['1m', '1 min'], ['5m', '5 min'], ['15m', '15 min'], ['1h', '1 h'], ['all', 'all']];
let on;

// `handlers` has paused(is) and said(text).
export function build(handlers) {
  on = handlers;
  const form = byId('controls');
  form.addEventListener('submit', (event) => event.preventDefault());
  form.append(
    h('fieldset', { class: 'segments' }, h('legend', { class: 'sr' }, 'Window'),
      WINDOWS.map(([value, text]) => h('label', {}, h('input', { type: 'radio', name: 'window', value, onchange: () => change({ window: value, slice: '' }) }), h('span', {}, text)))),
    ...['model', 'engine', 'tag', 'run'].map((name) => h('label', { class: 'choice' }, h('span', {}, name), h('select', { id: `choose-${name}`, onchange: (event) => change({ [name]: event.target.value, slice: '' }) }))),
    h('button', { type: 'button', id: 'pause', 'aria-pressed': 'false', onclick: pause }, 'Pause'),
    h('button', { type: 'button', id: 'begin', onclick: begin }, 'Begin run…'),
    h('button', { type: 'button', id: 'theme', title: 'light or dark', onclick: turn }, 'Theme'));
  theme();
}

let paused = false;
function pause() {
  paused = !paused;
  byId('pause').setAttribute('aria-pressed', String(paused));
  byId('pause').textContent = paused ? 'Go on' : 'Pause';
  on.paused(paused);
}

function turn() {
  const dark = matchMedia('(prefers-color-scheme: dark)').matches;
  const now = view.theme || (dark ? 'dark' : 'light');
  change({ theme: now === 'dark' ? 'light' : 'dark' });
}

export function theme() {
  if (view.theme === 'dark' || view.theme === 'light') document.documentElement.dataset.theme = view.theme;
  else delete document.documentElement.dataset.theme;
}

function begin() {
  const field = h('input', { id: 'run-name', maxlength: 64, placeholder: 'k=4, new drafter, …', autocomplete: 'off' });
  const wrong = h('p', { class: 'wrong', role: 'alert' });
  const dialog = h('dialog', { 'aria-labelledby': 'begin-title' });
  const form = h('form', { method: 'dialog' }, h('h2', { id: 'begin-title' }, 'Begin a run'),
    h('p', {}, 'The run that goes on ends. Nothing is reset; without a name it gets the time as its name.'),
    h('label', { for: 'run-name' }, 'Name'), field, wrong,
    h('div', { class: 'buttons' }, h('button', { type: 'button', onclick: () => dialog.close() }, 'Cancel'), h('button', { class: 'primary' }, 'Begin')));
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    try {
      const run = await json('api/v1/runs', { post: field.value.trim() ? { name: field.value.trim() } : {} });
      dialog.close();
      on.said(`Run ${run.name} began.`);
    } catch (error) { wrong.textContent = error.message; }
  });
  dialog.addEventListener('close', () => { dialog.remove(); byId('begin').focus(); });
  dialog.append(form);
  document.body.append(dialog);
  dialog.showModal();
  field.focus();
}

function options(name, values) {
  const select = byId(`choose-${name}`);
  const all = view[name] && !values.includes(view[name]) ? [view[name], ...values] : values;
  if (document.activeElement !== select || select.dataset.shown === undefined)
    show(select, h('option', { value: '' }, `all ${name}s`.replace('alls', 'all')), all.map((value) => h('option', { value }, value)));
  if (select.value !== view[name]) select.value = view[name];
  select.parentElement.hidden = name !== 'model' && values.length === 0 && !view[name];
}

export function update(state) {
  for (const input of byId('controls').querySelectorAll('input[name=window]')) input.checked = input.value === view.window;
  options('model', state?.known?.models ?? []);
  options('engine', state?.known?.engines ?? []);
  options('tag', state?.known?.tags ?? []);
  options('run', (state?.runs ?? []).map((run) => run.name));
}
