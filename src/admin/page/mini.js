// Small drawings inside other things: a course, a histogram, the steps of one reply.

import { s } from './dom.js';

export function sparkline(values, width = 132, height = 30) {
  const known = values.filter((value) => value !== null);
  const picture = s('svg', { class: 'spark', viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' });
  if (known.length === 0) return picture;
  const low = Math.min(...known); const high = Math.max(...known);
  const x = (index) => (values.length > 1 ? (index / (values.length - 1)) * (width - 4) + 2 : width / 2);
  const y = (value) => (high > low ? height - 3 - ((value - low) / (high - low)) * (height - 6) : height / 2);
  let path = ''; let pen = false; let last = null;
  values.forEach((value, index) => {
    if (value === null) { pen = false; return; }
    path += `${pen ? 'L' : 'M'}${x(index).toFixed(1)} ${y(value).toFixed(1)}`;
    pen = true; last = [x(index), y(value)];
  });
  picture.append(s('path', { d: path }), s('path', { class: 'end', d: `M${last[0].toFixed(1)} ${last[1].toFixed(1)}h.01` }));
  return picture;
}

// Shares of steps by number of accepted drafts.
export function histogram(counts, bars, width = 64, height = 18) {
  const steps = Object.values(counts ?? {}).reduce((sum, it) => sum + it, 0);
  const most = Math.max(1, ...Object.values(counts ?? {}));
  const n = Math.max(bars, 1);
  const wide = width / n;
  const said = Object.entries(counts ?? {}).map(([accepted, count]) => `${accepted}: ${Math.round((100 * count) / steps)} %`).join(', ');
  return s('svg', { class: 'mini', viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': said ? `steps by accepted drafts: ${said}` : 'no steps' },
    Array.from({ length: n }, (_, accepted) => {
      const tall = ((counts?.[accepted] ?? 0) / most) * (height - 1);
      return s('rect', { x: (accepted * wide + 0.5).toFixed(1), width: Math.max(1, wide - 1).toFixed(1), y: (height - Math.max(tall, 0.8)).toFixed(1), height: Math.max(tall, 0.8).toFixed(1), class: tall > 0 ? 'full' : 'none' });
    }));
}

// One column per step: filled cells were accepted, hollow ones drafted and thrown away.
export function stepStrip(accepted, drafted) {
  const size = 7; const gap = 1;
  const perRow = 80;
  const tall = Math.max(1, ...accepted, ...(drafted ?? []));
  const rows = Math.ceil(accepted.length / perRow);
  const band = tall * (size + gap) + 8;
  const cells = [];
  accepted.forEach((kept, index) => {
    const column = index % perRow; const row = Math.floor(index / perRow);
    const put = drafted?.[index] ?? kept;
    for (let cell = 0; cell < Math.max(put, kept); cell += 1)
      cells.push(s('rect', { x: column * (size + gap), y: row * band + (tall - 1 - cell) * (size + gap), width: size, height: size, rx: 1, class: cell < kept ? 'kept' : 'thrown' }));
    if (Math.max(put, kept) === 0) cells.push(s('rect', { x: column * (size + gap), y: row * band + tall * (size + gap) - 3, width: size, height: 2, class: 'none' }));
  });
  const width = Math.min(accepted.length, perRow) * (size + gap);
  const kept = accepted.reduce((sum, it) => sum + it, 0);
  return s('svg', { class: 'strip', viewBox: `0 0 ${width} ${rows * band}`, width, height: rows * band, role: 'img', 'aria-label': `${accepted.length} steps in order, ${kept} drafts accepted` }, cells);
}
