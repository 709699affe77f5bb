'use strict';
// Requests to the server. A key, where the server wants one, stays in this tab's session storage.

const KEY = 'tensormill-key';

function credentials() {
  const key = sessionStorage.getItem(KEY);
  return key ? {Authorization: 'Bearer ' + key} : {};
}

/** What the server answers in place of success: `message` says what, `details` name the places of a body. */
class Problem extends Error {
  constructor(status, body) {
    super(body && body.detail ? body.detail : 'the server answers ' + status);
    this.status = status;
    this.details = ((body && body.errors) || []).map((error) =>
      [error.pointer || error.node, error.detail || error.reason].filter(Boolean).join(': '));
  }
}

async function problemOf(response) {
  const text = await response.text();
  let body = null;
  if ((response.headers.get('Content-Type') || '').includes('json')) body = JSON.parse(text);
  return new Problem(response.status, body);
}

/** Throws a Problem, and shows the place for a key when it was for want of one. */
async function request(method, path, options = {}) {
  const response = await fetch(path, {...options, method, headers: {...credentials(), ...options.headers}});
  if (response.status === 401) askForKey();
  if (!response.ok) throw await problemOf(response);
  return response;
}

async function get(path) {
  return (await request('GET', path, {headers: {Accept: 'application/json'}})).json();
}

async function send(method, path, body) {
  const response = await request(method, path,
    body === undefined ? {} : {body: JSON.stringify(body), headers: {'Content-Type': 'application/json'}});
  return response.status === 204 ? null : response.json();
}

/** All items of a list, page by page. */
async function list(path) {
  const items = [];
  let cursor = null;
  do {
    const page = await get(path + (path.includes('?') ? '&' : '?') + 'limit=100' +
      (cursor ? '&cursor=' + encodeURIComponent(cursor) : ''));
    items.push(...page.items);
    cursor = page.next_cursor;
  } while (cursor && items.length < 1000);
  return items;
}

/** Posts a file; `onprogress(part)` hears how much went, 0 to 1. fetch() cannot tell that. */
function upload(path, file, onprogress) {
  return new Promise((resolve, reject) => {
    const transfer = new XMLHttpRequest();
    transfer.open('POST', path);
    for (const [name, value] of Object.entries(credentials())) transfer.setRequestHeader(name, value);
    transfer.setRequestHeader('Content-Type', 'application/octet-stream');
    transfer.responseType = 'json';
    transfer.upload.onprogress = (event) => onprogress(event.lengthComputable ? event.loaded / event.total : 0);
    transfer.onload = () => (transfer.status < 300 ? resolve(transfer.response)
      : reject(new Problem(transfer.status, transfer.response)));
    transfer.onerror = () => reject(new Error('the connection broke during the upload'));
    transfer.send(file);
  });
}

/** A file for the reader to keep, fetched with the key. */
async function download(path, name) {
  const url = URL.createObjectURL(await (await request('GET', path)).blob());
  el('a', {href: url, download: name}).click();
  URL.revokeObjectURL(url);
}

/** Server-sent events of a job until `end`; a broken stream is taken up again behind the last event heard. */
async function events(path, signal, handle) {
  let last = null;
  for (let wait = 500; !signal.aborted; wait = Math.min(wait * 2, 10000)) {
    try {
      const response = await request('GET', path, {signal, headers: last ? {'Last-Event-ID': last} : {}});
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let text = '';;) {
        const {value, done} = await reader.read();
        if (done) break;
        const blocks = (text + value).split('\n\n');
        text = blocks.pop();
        for (const block of blocks) {
          const event = Object.fromEntries(block.split('\n').map((line) => line.split(/: (.*)/s, 2)));
          if (event.id) last = event.id;
          if (!event.event) continue;
          wait = 500;
          handle(event.event, JSON.parse(event.data));
          if (event.event === 'end') return;
        }
      }
    } catch (problem) {
      if (signal.aborted) return;
      if (problem instanceof Problem) throw problem;
    }
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}
