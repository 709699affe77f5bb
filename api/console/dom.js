'use strict';
// Elements and texts. What the server says is a stranger's data: it becomes text nodes only, never markup.

/** An element; `properties` are attributes, `class`, and handlers as `onclick`. Strings among children become text. */
function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'class') element.className = value;
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** A table; a row is an array of cells, a cell a text, an element or an array of those. */
function table(titles, rows, nothing) {
  if (rows.length === 0) return el('p', {class: 'nothing'}, nothing);
  const cells = (row) => el('tr', {}, row.map((cell) => el('td', {}, cell)));
  return el('div', {class: 'wide'}, el('table', {},
    el('thead', {}, el('tr', {}, titles.map((title) => el('th', {scope: 'col'}, title)))),
    el('tbody', {}, rows.map(cells))));
}

/** A button whose action may fail: while it works it is disabled, an error is shown. */
function action(label, work, properties = {}) {
  return el('button', {type: 'button', ...properties, onclick: async (event) => {
    const button = event.currentTarget;
    button.disabled = true;
    await attempt(work);
    button.disabled = false;
  }}, label);
}

/** A labelled control in a form. */
function field(label, control, hint) {
  return el('label', {class: 'field'}, el('span', {}, label), control, hint ? el('small', {}, hint) : null);
}

function select(name, options, chosen) {
  return el('select', {name}, options.map(([value, text]) => el('option', {value, selected: value === chosen}, text)));
}

/** Runs `work`; what it throws is shown above the page. Returns whether it succeeded. */
async function attempt(work) {
  try {
    await work();
    showError(null);
    return true;
  } catch (problem) {
    showError(problem);
    return false;
  }
}

function showError(problem) {
  const box = document.getElementById('error');
  box.hidden = problem === null;
  box.replaceChildren(...(problem === null ? [] : [problem.message, el('ul', {}, (problem.details || []).map(
    (detail) => el('li', {}, detail)))]));
}

const shortId = (id) => id.replace('sha256:', '').slice(0, 12);
const idText = (id) => el('code', {title: id}, shortId(id));
const dims = (shape) => '[' + shape.join(',') + ']';
const specs = (tensors) => tensors.map((tensor) => el('div', {}, tensor.name + ' ' + tensor.dtype + dims(tensor.shape)));
const time = (text) => el('time', {datetime: text}, new Date(text).toLocaleString());

function bytes(count) {
  const units = ['B', 'KB', 'MB', 'GB', 'TB'];
  let unit = 0;
  for (; count >= 1000 && unit + 1 < units.length; ++unit) count /= 1000;
  return (unit === 0 ? count : count.toFixed(1)) + ' ' + units[unit];
}

/** Milliseconds with three digits that count. */
function ms(value) {
  return value === null || value === undefined ? '—' : String(Number(value.toPrecision(3))) + ' ms';
}
