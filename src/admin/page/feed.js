// The live feed: keeps the state that the tap tells, and comes back by itself when the tap has gone.

import { ask, ApiError } from './session.js';
import { filter } from './view.js';

// A tap gives a sign of life every two seconds at least.
const SILENCE = 12_000;
const PAUSES = [500, 1_000, 2_000, 4_000];

// RFC 7396: members that changed, null for those that went.
export function merge(target, patch) {
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete target[name];
    else if (typeof value === 'object' && !Array.isArray(value)) {
      const there = target[name];
      target[name] = merge(there && typeof there === 'object' && !Array.isArray(there) ? there : {}, value);
    } else target[name] = value;
  }
  return target;
}

export class Feed {
  #turn = 0;
  #abort = null;

  // `on` has state(state), requests(rows, skipped), opened() and status(kind, text).
  constructor(on) { this.on = on; this.state = null; }

  // Lets go of the connection until it is opened again.
  close() {
    this.#turn += 1;
    this.#abort?.abort();
    this.isClosed = true;
  }

  // Begins anew, with the filter of the moment.
  async open() {
    this.isClosed = false;
    const turn = ++this.#turn;
    this.#abort?.abort();
    for (let failures = 0; turn === this.#turn; failures += 1) {
      const abort = (this.#abort = new AbortController());
      const silence = setInterval(() => { if (Date.now() - this.heard > SILENCE) abort.abort(); }, 1_000);
      try {
        this.heard = Infinity;
        const response = await ask(`api/v1/stream?${filter({ by: 'tag' })}`, { signal: abort.signal });
        this.heard = Date.now();
        failures = 0;
        this.on.status('live', 'live');
        await this.#read(response.body, turn);
        if (turn === this.#turn) this.on.status('waiting', 'The tap ended the feed; waiting for it to come back.');
      } catch (error) {
        if (turn !== this.#turn) return;
        const text = error instanceof ApiError ? error.message : 'The tap does not answer; the figures are the last ones it told.';
        this.on.status('waiting', text);
        if (error instanceof ApiError && error.status === 400) return;
      } finally { clearInterval(silence); }
      await new Promise((done) => setTimeout(done, PAUSES[Math.min(failures, PAUSES.length - 1)]));
    }
  }

  async #read(body, turn) {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    for (;;) {
      const { value, done } = await reader.read();
      if (done || turn !== this.#turn) return;
      this.heard = Date.now();
      text += value;
      for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
        this.#take(text.slice(0, end));
        text = text.slice(end + 2);
      }
    }
  }

  #take(event) {
    if (event.startsWith(':')) return;
    const line = (name) => event.split('\n').find((it) => it.startsWith(name))?.slice(name.length);
    const kind = line('event: ');
    const data = JSON.parse(line('data: ') ?? 'null');
    if (kind === 'snapshot') {
      this.state = data;
      this.on.opened();
      this.on.state(this.state);
    } else if (kind === 'delta' && this.state) this.on.state(merge(this.state, data));
    else if (kind === 'requests') this.on.requests(data.requests, data.skipped);
  }
}
