// Talks to the admin port, with its token where it asks for one. The token stays in this tab.

import { byId, h } from './dom.js';

const KEY = 'spectap-token';
let asking = null;

// Aside from the token, what the port said went wrong, in its own sentence.
export class ApiError extends Error {
  constructor(status, message) { super(message); this.status = status; }
}

const headers = (more) => {
  const token = sessionStorage.getItem(KEY);
  return token ? { ...more, Authorization: `Bearer ${token}` } : { ...more };
};

export async function ask(path, { signal, post } = {}) {
  for (;;) {
    const options = post === undefined
      ? { headers: headers(), signal }
      : { method: 'POST', headers: headers({ 'Content-Type': 'application/json' }), body: JSON.stringify(post), signal };
    const response = await fetch(path, options);
    if (response.status === 401) { await askForToken(); continue; }
    if (!response.ok) {
      const said = await response.json().catch(() => null);
      throw new ApiError(response.status, said?.error?.message ?? `the port answered ${response.status}`);
    }
    return response;
  }
}

export const json = async (path, options) => (await ask(path, options)).json();

function askForToken() {
  asking ??= new Promise((resolve) => {
    const refused = sessionStorage.getItem(KEY) !== null;
    const dialog = byId('token');
    const field = h('input', { type: 'password', id: 'token-field', autocomplete: 'off', required: true });
    const form = h('form', { method: 'dialog' },
      h('h2', { id: 'token-title' }, 'This tap asks for its token'),
      h('p', {}, refused ? 'That token was refused. ' : '', 'It is in the file that spectap was given with --admin-token-file. It stays in this tab.'),
      h('label', { for: 'token-field' }, 'Token'), field, h('button', { class: 'primary' }, 'Open'));
    form.addEventListener('submit', () => {
      sessionStorage.setItem(KEY, field.value.trim());
      asking = null;
      resolve();
    });
    dialog.addEventListener('cancel', (event) => event.preventDefault());
    dialog.replaceChildren(form);
    if (!dialog.open) dialog.showModal();
    field.focus();
  });
  return asking;
}
