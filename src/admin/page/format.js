// Numbers and times as people read them.

export const NONE = '–';
// As in the engine room: fewer requests than this and a figure is greyed.
export const FEW_REQUESTS = 30;

const known = (value) => value !== null && value !== undefined && Number.isFinite(value);
export const fixed = (value, digits = 2) => (known(value) ? value.toFixed(digits) : NONE);
export const percent = (share, digits = 1) => (known(share) ? `${(100 * share).toFixed(digits)} %` : NONE);
export const whole = (value) => (known(value) ? Math.round(value).toLocaleString('en-US') : NONE);
export const signed = (value, digits = 2) =>
  known(value) ? `${value > 0 ? '+' : value < 0 ? '−' : '±'}${Math.abs(value).toFixed(digits)}` : NONE;

export function ms(value) {
  if (!known(value)) return NONE;
  if (value >= 10_000) return `${(value / 1000).toFixed(1)} s`;
  return value >= 100 ? `${value.toFixed(0)} ms` : `${value.toFixed(1)} ms`;
}

export function brief(value) {
  if (!known(value)) return NONE;
  for (const [limit, letter] of [[1e9, 'G'], [1e6, 'M'], [1e4, 'k']])
    if (value >= limit) return `${(value / (letter === 'k' ? 1e3 : limit)).toFixed(1)}${letter}`;
  return whole(value);
}

const two = (value) => String(value).padStart(2, '0');
export function clock(time, withSeconds = true) {
  const date = new Date(time);
  const text = `${two(date.getHours())}:${two(date.getMinutes())}`;
  return withSeconds ? `${text}:${two(date.getSeconds())}` : text;
}

export function ago(from, now) {
  const seconds = Math.max(0, (now - new Date(from).getTime()) / 1000);
  if (seconds < 90) return `${Math.round(seconds)} s ago`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min ago`;
  return seconds < 129_600 ? `${Math.round(seconds / 3600)} h ago` : `${Math.round(seconds / 86_400)} d ago`;
}

// `up_to_0.7` and `above_256` as words.
export const band = (name) =>
  name === null || name === undefined ? 'unknown' : name.replace(/^up_to_/, '≤ ').replace(/^above_/, '> ').replaceAll('_', ' ');
