// What is being looked at. It lives in the page's address, so that a link shows somebody else the same.

const DEFAULTS = {
  window: '5m', model: '', engine: '', tag: '', run: '', facet: 'context', by: 'length', sort: '-ended_at', q: '',
  outcome: '', acceptance: '', columns: '', slice: '', base: '', other: '', depth: '', cost: '', theme: '', request: '',
};
const listeners = new Set();

export const view = { ...DEFAULTS };

function read() {
  const given = new URLSearchParams(location.search);
  for (const name of Object.keys(DEFAULTS)) view[name] = given.get(name) ?? DEFAULTS[name];
  if (!['1m', '5m', '15m', '1h', 'all'].includes(view.window)) view.window = DEFAULTS.window;
}

export function change(values) {
  const changed = Object.entries(values).filter(([name, value]) => view[name] !== value).map(([name]) => name);
  if (changed.length === 0) return;
  Object.assign(view, values);
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(view)) if (value !== DEFAULTS[name]) query.set(name, value);
  history.replaceState(null, '', `${location.pathname}${query.size ? `?${query}` : ''}`);
  tell(changed);
}

function tell(changed) {
  for (const listener of listeners) listener(new Set(changed));
}

export const onChange = (listener) => listeners.add(listener);

// What the numbers' endpoints take.
export function filter(extra = {}) {
  const query = new URLSearchParams();
  const all = { window: view.window, model: view.model, engine: view.engine, tag: view.tag, run: view.run, ...extra };
  for (const [name, value] of Object.entries(all)) if (value) query.set(name, value);
  return query.toString();
}

addEventListener('popstate', () => { read(); tell(Object.keys(DEFAULTS)); });
read();
