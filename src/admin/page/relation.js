// Acceptance length against inter-token latency, request by request, coloured by concurrency.

import { byId, colour, h, show } from './dom.js';
import { fixed, signed, whole } from './format.js';
import { acceptanceOf } from './figures.js';

const MOST = 1_500;
const BANDS = [[1, '1'], [3, '2–3'], [7, '4–7'], [15, '8–15'], [Infinity, '16 and more']];
const LEFT = 40; const BOTTOM = 30; const TOP = 8; const RIGHT = 8;
let canvas;

const bandOf = (inFlight) => BANDS.findIndex(([most]) => inFlight <= most);
const quantile = (sorted, q) => sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))];

export function update(state, rows) {
  const place = byId('relation');
  if (!canvas) { canvas = h('canvas', { role: 'img' }); place.append(canvas, h('div', { id: 'relation-says' })); }
  const points = [];
  for (const row of rows) {
    const { length } = acceptanceOf(row);
    const latency = row.timing?.inter_token_latency_ms;
    if (length && latency) points.push({ x: length, y: latency, band: bandOf(row.in_flight) });
    if (points.length >= MOST) break;
  }
  draw(points, place.clientWidth);
  const relation = (state.summary.relations ?? []).find((it) => it.with === 'inter_token_latency');
  const used = BANDS.map(([, name], band) => ({ name, band, n: points.filter((it) => it.band === band).length })).filter(({ n }) => n > 0);
  canvas.setAttribute('aria-label', points.length === 0 ? 'No streamed request with numbers' : `${points.length} requests, acceptance length against inter-token latency`);
  show(byId('relation-says'), points.length === 0 ? h('p', { class: 'quiet' }, 'Needs streamed requests with numbers.') : [
    h('p', { class: 'legend' }, 'in flight ', used.map(({ name, band, n }) => [h('i', { class: `dot band-${band}` }), ` ${name} (${whole(n)}) `])),
    relation ? h('p', { class: 'note' }, `Rank correlation ${signed(relation.spearman)} over ${whole(relation.n)} requests`, relation.bins?.length ? `; median ${fixed(relation.bins[0].median, 1)} ms at the shortest lengths, ${fixed(relation.bins.at(-1).median, 1)} ms at the longest.` : '.') : null]);
}

function draw(points, width) {
  const height = 190; const scale = devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * scale)) { canvas.width = Math.round(width * scale); canvas.height = Math.round(height * scale); canvas.style.width = `${width}px`; canvas.style.height = `${height}px`; }
  const pen = canvas.getContext('2d');
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  if (points.length === 0) return;
  const ys = points.map(({ y }) => y).sort((a, b) => a - b);
  // The slowest few would press all others into a line.
  const top = quantile(ys, 0.99) * 1.1; const most = Math.max(...points.map(({ x }) => x), 2);
  const x = (value) => LEFT + ((value - 1) / (most - 1 || 1)) * (width - LEFT - RIGHT);
  const y = (value) => height - BOTTOM - (Math.min(value, top) / top) * (height - BOTTOM - TOP);
  pen.font = '11px system-ui, sans-serif'; pen.strokeStyle = colour('--grid'); pen.fillStyle = colour('--soft'); pen.lineWidth = 1; pen.textBaseline = 'middle';
  for (let tick = 0; tick <= 4; tick += 1) {
    const value = (top * tick) / 4;
    pen.beginPath(); pen.moveTo(LEFT, y(value)); pen.lineTo(width - RIGHT, y(value)); pen.stroke();
    pen.textAlign = 'right'; pen.fillText(value.toFixed(top < 20 ? 1 : 0), LEFT - 6, y(value));
    const length = 1 + ((most - 1) * tick) / 4;
    pen.textAlign = 'center'; pen.fillText(length.toFixed(1), Math.min(x(length), width - 14), height - BOTTOM + 10);
  }
  pen.textAlign = 'right'; pen.fillText('ms per token ↑ · acceptance length →', width - RIGHT, height - 6);
  pen.globalAlpha = 0.55;
  for (const point of points) { pen.fillStyle = colour(`--band-${point.band}`); pen.beginPath(); pen.arc(x(point.x), y(point.y), 2.4, 0, 7); pen.fill(); }
  pen.globalAlpha = 1;
}
