// Figures made of what the tap tells. Nothing here knows how they are drawn.

const ratio = (part, whole) => (whole > 0 ? part / whole : null);

// The sums of one stretch of the history, or of the window before, as figures.
export const FIGURES = {
  length: { of: (sums) => (sums.steps > 0 ? 1 + sums.accepted_in_steps / sums.steps : null), n: (sums) => sums.n },
  rate: { of: (sums) => ratio(sums.accepted, sums.drafted), n: (sums) => sums.n },
  share: { of: (sums) => ratio(Math.min(sums.accepted_in_output, sums.completion_tokens), sums.completion_tokens), n: (sums) => sums.n },
  waste: { of: (sums, seconds) => (seconds > 0 && sums.n > 0 ? Math.max(0, sums.drafted - sums.accepted) / seconds : null), n: (sums) => sums.n },
  told: { of: (sums) => ratio(sums.told, sums.exchanges), n: (sums) => sums.exchanges },
};

const WINDOWS = { '1m': 60, '5m': 300, '15m': 900, '1h': 3600 };
const seconds = (text) => new Date(text).getTime() / 1000;

// Seconds of the window that have passed: the last step of it is still filling.
export function length(state) {
  const { from, to } = state.history;
  return from && to ? Math.max(1, Math.min(seconds(to), seconds(state.now)) - seconds(from)) : 0;
}

export function stretches(history) {
  return Object.entries(history.stretches ?? {}).map(([at, sums]) => ({ at: Number(at), sums })).sort((a, b) => a.at - b.at);
}

// The stretches with those without exchanges between them, as null.
export function timeline(history) {
  const there = new Map(stretches(history).map(({ at, sums }) => [at, sums]));
  const step = history.step_seconds;
  const first = Math.floor(seconds(history.from) / step) * step;
  const line = [];
  for (let at = first; at < seconds(history.to); at += step) line.push({ at, sums: there.get(at) ?? null });
  return line;
}

// One card: the figure of the summary, its course, and what it was in the window before.
export function card(state, name) {
  const { summary, history } = state;
  const avg = (metrics, tag) => metrics?.[tag]?.avg ?? null;
  const m = summary.metrics ?? {};
  const passed = length(state);
  const drafted = avg(m, 'total_draft_tokens');
  const values = {
    length: avg(m, 'spec_decode_token_weighted_acceptance_length'),
    rate: drafted === null ? null : avg(m, 'spec_decode_overall_draft_acceptance_rate') / 100,
    share: avg(summary.gain, 'draft_token_share'),
    waste: drafted === null || summary.scope.window === 'all' ? null : Math.max(0, drafted - avg(m, 'total_accepted_draft_tokens')) / passed,
    told: summary.record_share ?? null,
  };
  const records = m.spec_decode_token_weighted_acceptance_length?.n ?? m.spec_decode_overall_draft_acceptance_rate?.n ?? 0;
  const n = name === 'told' ? summary.n.exchanges : records;
  const { of } = FIGURES[name];
  const before = history.before ? of(history.before, WINDOWS[history.window]) : null;
  if (name === 'waste' && summary.scope.window === 'all' && drafted !== null) {
    // Since the start: the history reaches back a day at most, so the rate is that of its own stretches.
    const all = stretches(history).reduce((sum, { sums }) => sum + Math.max(0, sums.drafted - sums.accepted), 0);
    values.waste = all / passed;
  }
  const course = timeline(history).map(({ sums }) => (sums ? of(sums, history.step_seconds) : null));
  const interval = { length: m.spec_decode_token_weighted_acceptance_length?.interval, rate: m.spec_decode_overall_draft_acceptance_rate?.interval }[name];
  return { value: values[name], n, course, before, beforeN: history.before ? FIGURES[name].n(history.before) : 0, interval };
}

export const isEmpty = (state) => Object.keys(state.summary.pooled_spec_decode_acceptance_histogram ?? {}).length === 0
  && !(state.summary.metrics?.total_draft_tokens?.n > 0);

export const histogramOf = (observation) => {
  const all = {};
  for (const record of observation.spec_decode_acceptance ?? [])
    for (const [accepted, steps] of Object.entries(record.acceptance_histogram ?? {})) all[accepted] = (all[accepted] ?? 0) + steps;
  return all;
};

// What a row of the request table says of acceptance: over all records of the exchange.
export function acceptanceOf(observation) {
  let steps = 0; let accepted = 0; let drafted = 0; let inSteps = 0; let any = false;
  for (const record of observation.spec_decode_acceptance ?? []) {
    any = true;
    accepted += record.num_accepted_draft_tokens;
    drafted += record.num_draft_tokens;
    if (record.num_spec_steps && record.provenance !== 'counts') { steps += record.num_spec_steps; inSteps += record.num_accepted_draft_tokens; }
  }
  return { steps: any ? steps : null, length: steps > 0 ? 1 + inSteps / steps : null, rate: drafted > 0 ? accepted / drafted : null };
}

// What another depth would give: the range of the length, the waste, and the speed-up where a draft's cost is known.
export function whatIf(advice, depth, cost) {
  const found = advice?.depths?.find((it) => it.depth === depth);
  if (!found) return null;
  const { low } = found.length;
  const high = found.length.high ?? null;
  const speed = (length) => (length === null ? null : length / (1 + cost * depth));
  return {
    low, high, estimate: found.estimate,
    wasted: found.wasted_per_token, drafted: found.drafted_per_token,
    speedUp: cost === null ? null : { low: speed(low), high: speed(high) },
  };
}
