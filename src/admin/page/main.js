// The page: one feed, and panels that each draw a part of what it tells.

import { byId } from './dom.js';
import * as categories from './categories.js';
import * as compare from './compare.js';
import * as controls from './controls.js';
import * as drawer from './drawer.js';
import * as facets from './facets.js';
import { Feed } from './feed.js';
import { card, isEmpty } from './figures.js';
import * as findings from './findings.js';
import { fixed } from './format.js';
import * as heatmap from './heatmap.js';
import * as relation from './relation.js';
import * as requests from './requests.js';
import * as stats from './stats.js';
import * as survival from './survival.js';
import { onChange, view } from './view.js';

// What decides which exchanges count; the rest of the view is a matter of drawing.
const SELECTION = ['window', 'model', 'engine', 'tag', 'run'];
let state = null;
let held = []; // Requests that came while the page stands still.
let paused = false;
let due = false;

const feed = new Feed({
  state: (told) => { state = told; draw(); },
  requests: (rows, skipped) => { if (paused) held = rows.concat(held).slice(0, 10_000); else requests.add(rows, skipped); },
  opened: () => { requests.load(); },
  status: (kind, text) => { const place = byId('status'); place.dataset.kind = kind; say(kind === 'live' && paused ? 'paused' : text); },
});

const say = (text) => { if (byId('status').textContent !== text) byId('status').textContent = text; };

// At most once a frame, and not while the page stands still or out of sight.
function draw() {
  if (due) return;
  due = true;
  requestAnimationFrame(() => {
    due = false;
    controls.update(state);
    if (!state || (paused && drawn)) return;
    drawn = true;
    findings.update(state);
    stats.update(state);
    if (!isEmpty(state)) {
      heatmap.update(state);
      survival.update(state);
      categories.update(state);
      facets.update(state);
      relation.update(state, requests.all());
    }
    compare.update(state);
    const { value } = card(state, 'length');
    document.title = value === null ? 'spectap' : `${fixed(value)} · spectap`;
    document.documentElement.dataset.ready = 'yes';
  });
}
let drawn = false;

controls.build({
  paused: (is) => {
    paused = is;
    byId('status').dataset.paused = is ? 'yes' : 'no';
    say(is ? 'paused' : 'live');
    if (!is) { requests.add(held, 0); held = []; draw(); }
  },
  said: say,
});
requests.build((id) => drawer.open(id), () => { if (state && drawn && !paused && !isEmpty(state)) relation.update(state, requests.all()); });
drawer.build();

onChange((changed) => {
  if (changed.has('theme')) { controls.theme(); drawn = false; heatmap.redraw(); }
  if (SELECTION.some((name) => changed.has(name))) {
    drawn = false;
    feed.open();
    if (view.base && view.other) compare.compare();
    return;
  }
  if (['q', 'outcome', 'acceptance', 'sort', 'columns', 'slice'].some((name) => changed.has(name))) requests.filterAndDraw();
  if (changed.has('slice')) { heatmap.redraw(); if (view.slice) requests.older(); }
  if (changed.has('facet') || changed.has('depth') || changed.has('cost') || changed.has('theme')) { drawn = false; draw(); }
});

// A browser opens few connections to one address: a page that nobody looks at gives its own back, and costs the tap nothing.
let sleep;
document.addEventListener('visibilitychange', () => {
  clearTimeout(sleep);
  if (document.hidden) sleep = setTimeout(() => feed.close(), 30_000);
  else if (feed.isClosed) feed.open();
});

feed.open();
if (view.request) drawer.open(view.request);
