// Accepted drafts per step over time. Each column is a stretch of time, each row a number of accepted drafts; a cell is
// as dark as the share of the column's steps that accepted exactly so many. All of it comes from summed histograms.

import { byId, colour, h, show } from './dom.js';
import { clock, fixed, percent, whole } from './format.js';
import { FIGURES, timeline } from './figures.js';
import { change, view } from './view.js';

const LEFT = 30; const BOTTOM = 22; const TOP = 18; const RIGHT = 8;
let shown = null; // The columns, the rows and the sizes of what is drawn.
let cursor = null; // Column and row that the keyboard or the pointer is on.
let canvas; let readout;

function build() {
  canvas = h('canvas', { id: 'heatmap-canvas', tabindex: 0, role: 'application', 'aria-roledescription': 'heatmap', 'aria-describedby': 'heatmap-readout' });
  readout = h('p', { id: 'heatmap-readout', class: 'readout', 'aria-live': 'off' });
  const place = byId('heatmap');
  place.append(canvas, h('div', { class: 'under' }, readout, h('span', { class: 'legend' }, 'share of steps ', h('i', { class: 'ramp' }), ' line: mean accepted drafts')), h('p', { id: 'slice' }));
  canvas.addEventListener('pointermove', (event) => { cursor = cellAt(event); draw(); });
  canvas.addEventListener('pointerleave', () => { cursor = null; draw(); });
  canvas.addEventListener('click', (event) => pick(cellAt(event)));
  canvas.addEventListener('keydown', onKey);
  new ResizeObserver(() => draw()).observe(place);
}

function cellAt(event) {
  if (!shown) return null;
  const box = canvas.getBoundingClientRect();
  const column = Math.floor((event.clientX - box.left - LEFT) / shown.wide);
  const row = shown.rows - 1 - Math.floor((event.clientY - box.top - TOP) / shown.tall);
  return column >= 0 && column < shown.columns.length && row >= 0 && row < shown.rows ? { column, row } : null;
}

function onKey(event) {
  if (!shown) return;
  const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
  if (steps) {
    const at = cursor ?? { column: shown.columns.length - 1, row: 0 };
    cursor = {
      column: Math.min(Math.max(at.column + steps[0], 0), shown.columns.length - 1),
      row: Math.min(Math.max(at.row + steps[1], 0), shown.rows - 1),
    };
    readout.setAttribute('aria-live', 'polite');
    draw();
  } else if (event.key === 'Enter' || event.key === ' ') pick(cursor);
  else if (event.key === 'Escape') change({ slice: '' });
  else return;
  event.preventDefault();
}

function pick(cell) {
  if (!cell) return;
  const { at } = shown.columns[cell.column];
  const slice = `${at}-${at + shown.step}-${cell.row}`;
  change({ slice: view.slice === slice ? '' : slice });
}

// The slice of the address: from, to (seconds) and accepted drafts.
export function slice() {
  const found = /^(\d+)-(\d+)-(\d+)$/.exec(view.slice);
  return found ? { from: Number(found[1]), to: Number(found[2]), accepted: Number(found[3]) } : null;
}

export function update(state) {
  if (!canvas) build();
  const columns = timeline(state.history);
  let rows = 1 + Math.max(0, ...(state.summary.advice?.k ? [state.summary.advice.k] : []));
  for (const { sums } of columns) if (sums) for (const accepted of Object.keys(sums.histogram)) rows = Math.max(rows, Number(accepted) + 1);
  const starts = (state.runs ?? []).filter((run) => run.why !== 'started').map((run) => ({ at: new Date(run.start).getTime() / 1000, run }));
  shown = { columns, rows: Math.min(rows, 33), step: state.history.step_seconds, starts, wide: 1, tall: 1 };
  draw();
}

function draw() {
  if (!shown) return;
  const place = byId('heatmap');
  const width = Math.max(place.clientWidth, 200);
  // Beside the survival curve there is room for taller rows.
  const [most, each] = innerWidth > 860 ? [430, 70] : [320, 40];
  const height = Math.min(most, Math.max(220, shown.rows * each + TOP + BOTTOM));
  const scale = devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale); canvas.height = Math.round(height * scale);
    canvas.style.width = `${width}px`; canvas.style.height = `${height}px`;
  }
  const pen = canvas.getContext('2d');
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  const wide = (shown.wide = (width - LEFT - RIGHT) / Math.max(shown.columns.length, 1));
  const tall = (shown.tall = (height - TOP - BOTTOM) / shown.rows);
  const top = (row) => TOP + (shown.rows - 1 - row) * tall;
  const ink = colour('--heat'); const quiet = colour('--quiet'); const line = colour('--line'); const text = colour('--soft');
  pen.font = '11px system-ui, sans-serif';
  pen.textBaseline = 'middle';
  pen.fillStyle = text; pen.textAlign = 'right';
  for (let row = 0; row < shown.rows; row += Math.ceil(shown.rows / 12)) pen.fillText(String(row), LEFT - 8, top(row) + tall / 2);
  const densest = Math.max(0.01, ...shown.columns.flatMap(({ sums }) => (sums && sums.steps > 0 ? Object.values(sums.histogram).map((steps) => steps / sums.steps) : [])));
  shown.columns.forEach(({ sums }, column) => {
    const x = LEFT + column * wide;
    for (let row = 0; row < shown.rows; row += 1) {
      const share = sums && sums.steps > 0 ? (sums.histogram[row] ?? 0) / sums.steps : 0;
      pen.globalAlpha = sums ? 0.35 : 0.18;
      pen.fillStyle = quiet;
      pen.fillRect(x, top(row), Math.max(wide - 1, 0.5), Math.max(tall - 1, 0.5));
      if (share > 0) {
        pen.globalAlpha = 0.05 + 0.95 * (share / densest) ** 1.15;
        pen.fillStyle = ink;
        pen.fillRect(x, top(row), Math.max(wide - 1, 0.5), Math.max(tall - 1, 0.5));
      }
    }
  });
  pen.globalAlpha = 1;
  course(pen, wide, (mean) => TOP + (shown.rows - 1 - mean) * tall + tall / 2, line);
  marks(pen, wide, height);
  times(pen, wide, height, text);
  frames(pen, wide, tall, top);
  say();
}

function course(pen, wide, y, line) {
  pen.strokeStyle = line; pen.lineWidth = 2; pen.lineJoin = 'round';
  pen.beginPath();
  let down = false;
  shown.columns.forEach(({ sums }, column) => {
    const length = sums ? FIGURES.length.of(sums) : null;
    if (length === null) { down = false; return; }
    const x = LEFT + (column + 0.5) * wide;
    if (down) pen.lineTo(x, y(length - 1)); else { pen.moveTo(x, y(length - 1)); pen.lineTo(x + 0.1, y(length - 1)); }
    down = true;
  });
  pen.stroke();
}

const placeOf = (at, wide) => LEFT + ((at - shown.columns[0].at) / shown.step) * wide;

function marks(pen, wide, height) {
  if (shown.columns.length === 0) return;
  pen.strokeStyle = colour('--mark'); pen.fillStyle = colour('--mark'); pen.lineWidth = 1.5; pen.textAlign = 'left';
  let free = 0;
  for (const { at, run } of [...shown.starts].sort((a, b) => a.at - b.at)) {
    const x = placeOf(at, wide);
    if (x < LEFT || x > LEFT + shown.columns.length * wide) continue;
    pen.setLineDash([4, 3]);
    pen.beginPath(); pen.moveTo(x, TOP - 6); pen.lineTo(x, height - BOTTOM); pen.stroke();
    pen.setLineDash([]);
    const label = run.why === 'engine_changed' ? 'engine changed' : run.name;
    if (x >= free) { pen.fillText(label, x + 3, 8); free = x + pen.measureText(label).width + 10; }
  }
}

function times(pen, wide, height, text) {
  pen.fillStyle = text; pen.textAlign = 'center';
  const every = Math.max(1, Math.ceil(74 / wide));
  for (let column = Math.floor(every / 2); column < shown.columns.length; column += every)
    pen.fillText(clock(shown.columns[column].at * 1000, shown.step < 60), LEFT + (column + 0.5) * wide, height - BOTTOM / 2 + 1);
}

function frames(pen, wide, tall, top) {
  const picked = slice();
  const frame = (column, row, colourName, thick) => {
    pen.strokeStyle = colour(colourName); pen.lineWidth = thick;
    pen.strokeRect(LEFT + column * wide - 0.5, top(row) - 0.5, Math.max(wide, 3), tall);
  };
  if (picked) {
    const column = shown.columns.findIndex(({ at }) => at === picked.from);
    if (column >= 0 && picked.accepted < shown.rows) frame(column, picked.accepted, '--ink', 2);
  }
  if (cursor && cursor.column < shown.columns.length) frame(cursor.column, cursor.row, '--ink', 1);
}

function say() {
  const cell = cursor && shown.columns[cursor.column];
  if (!cell) readout.textContent = 'Point at a cell, or use the arrow keys; Enter filters the requests below to it.';
  else if (!cell.sums || cell.sums.steps === 0) readout.textContent = `${clock(cell.at * 1000)}: no steps`;
  else {
    const steps = cell.sums.histogram[cursor.row] ?? 0;
    readout.textContent = `${clock(cell.at * 1000)}: ${percent(steps / cell.sums.steps)} of ${whole(cell.sums.steps)} steps accepted ${cursor.row}; length ${fixed(FIGURES.length.of(cell.sums))}`;
  }
  const all = shown.columns.filter(({ sums }) => sums && sums.steps > 0);
  const lengths = all.map(({ sums }) => FIGURES.length.of(sums));
  canvas.setAttribute('aria-label', all.length === 0 ? 'No steps in this window' : `Accepted drafts per step, ${all.length} stretches of ${shown.step} seconds, acceptance length from ${fixed(Math.min(...lengths))} to ${fixed(Math.max(...lengths))}, now ${fixed(lengths.at(-1))}`);
  const picked = slice();
  show(byId('slice'), picked
    ? [h('span', { class: 'chip' }, `requests that ended ${clock(picked.from * 1000)}–${clock(picked.to * 1000)} with a step that accepted ${picked.accepted}`), h('button', { type: 'button', 'data-key': 'clear-slice' }, 'show all')]
    : []);
  byId('slice').querySelector('button')?.addEventListener('click', () => change({ slice: '' }));
}

export const redraw = draw;
