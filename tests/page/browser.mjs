// A Chromium of the system, driven by playwright-core, and spectap processes for it to look at.

import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

// The packages are not kept beside the tests, so that the repository's own files stay apart.
const PACKAGES = resolve(process.env.SPECTAP_PAGE_PACKAGES ?? '.work/page');
const SPECTAP = resolve(process.env.SPECTAP_BINARY ?? 'target/debug/spectap');
const require = createRequire(join(PACKAGES, 'node_modules', 'x.js'));
export const axeSource = require.resolve('axe-core/axe.min.js');

export async function browser() {
  const { chromium } = require('playwright-core');
  const executablePath = ['/usr/bin/chromium', '/usr/bin/chromium-browser'].find(existsSync);
  return chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'] });
}

// Lets a page take its files from the folder SPECTAP_PAGE_FILES names, if one is given, rather than from the binary: what is
// changed there can be looked at without a build.
export async function fromDisk(page) {
  const folder = process.env.SPECTAP_PAGE_FILES;
  if (!folder) return;
  const types = { js: 'text/javascript', css: 'text/css', svg: 'image/svg+xml', html: 'text/html' };
  const answer = (route, file) => route.fulfill({ body: readFileSync(join(folder, file)), contentType: types[file.split('.').at(-1)] });
  await page.route('**/page/*', (route) => answer(route, new URL(route.request().url()).pathname.split('/').at(-1)));
  await page.route((url) => url.pathname === '/', (route) => answer(route, 'index.html'));
}

// A process of spectap that ends with the test.
export class Spectap {
  static #all = new Set();

  constructor(args) {
    this.child = spawn(SPECTAP, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, SPECTAP_LOG: 'info' } });
    this.text = '';
    for (const stream of [this.child.stdout, this.child.stderr]) stream.on('data', (data) => { this.text += data; });
    Spectap.#all.add(this);
  }

  // Waits for what it says.
  async says(pattern) {
    return until(() => pattern.exec(this.text), () => `${pattern} in\n${this.text}`);
  }

  async stop() {
    Spectap.#all.delete(this);
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    this.child.kill('SIGKILL');
    await once(this.child, 'exit');
  }

  static async stopAll() { await Promise.all([...Spectap.#all].map((it) => it.stop())); }
}

export async function until(found, what = 'what was waited for', deadline = 30_000) {
  const end = Date.now() + deadline;
  for (;;) {
    const value = await found();
    if (value) return value;
    if (Date.now() > end) throw new Error(`not within ${deadline} ms: ${typeof what === 'function' ? await what() : what}`);
    await new Promise((done) => setTimeout(done, 25));
  }
}
