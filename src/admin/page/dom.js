// Making elements, without a string of HTML anywhere: foreign text (a model's name, a tag) stays text.

const SVG = 'http://www.w3.org/2000/svg';

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (name === 'value' || name === 'checked' || name === 'selected') node[name] = value;
    else node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export const h = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);
export const s = (name, attributes, ...children) => fill(document.createElementNS(SVG, name), attributes, children);
export const byId = (id) => document.getElementById(id);

// Puts new content into a place only where it differs, so that a reader's place, a selection and the focus stay.
export function show(place, ...children) {
  const next = h('div', {}, ...children);
  if (place.dataset.shown === next.innerHTML) return false;
  const focused = place.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  place.dataset.shown = next.innerHTML;
  place.replaceChildren(...next.childNodes);
  if (focused) place.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  return true;
}

// The colour that the style sheet gives a name, for what is drawn on a canvas.
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
