'use strict';
// The console: which page is shown, and when it is drawn again. A page is named by the address behind '#'.

const PAGES = {
  models: {all: showModels, one: showModel},
  jobs: {all: showJobs, one: showJob},
  packages: {all: showPackages, one: showPackage},
  deployments: {all: showDeployments, one: showDeployment},
  store: {all: showStore},
};
const PERIOD_MS = 3000;
let leaving = new AbortController();

async function showStore(page) {
  const storage = await get('/v1/storage');
  const answer = el('p', {'aria-live': 'polite'});
  const collect = (query) => async () => {
    const {removed} = await send('POST', '/v1/gc' + query);
    answer.textContent = (query ? 'would remove ' : 'removed ') + removed.blobs + ' blobs, ' + bytes(removed.bytes);
  };
  page.replaceChildren(el('h2', {}, 'Store'), el('dl', {},
    el('dt', {}, 'blobs'), el('dd', {}, storage.blobs.count.toLocaleString() + ', ' + bytes(storage.blobs.bytes)),
    el('dt', {}, 'uploads'), el('dd', {}, storage.uploads.count.toLocaleString() + ', ' + bytes(storage.uploads.bytes)),
    el('dt', {}, 'quota'), el('dd', {}, storage.quota_bytes ? bytes(storage.quota_bytes) : 'none'),
    el('dt', {}, 'free on the disk'), el('dd', {}, bytes(storage.free_bytes))),
  el('div', {class: 'actions'}, action('What is not needed?', collect('?dry_run=1')), action('Remove it', collect(''))), answer);
}

function askForKey() {
  document.getElementById('key').hidden = false;
}

function place() {
  const [name, ...rest] = location.hash.slice(1).split('/');
  return PAGES[name] ? {name, id: decodeURIComponent(rest.join('/'))} : {name: 'models', id: ''};
}

/** Draws the page of the address; what the page before was waiting for is given up. */
async function show() {
  leaving.abort();
  leaving = new AbortController();
  const {signal} = leaving;
  const {name, id} = place();
  for (const link of document.querySelectorAll('nav a'))
    link.toggleAttribute('aria-current', link.getAttribute('href') === '#' + name);
  const page = document.getElementById('page');
  page.dataset.page = name;
  await attempt(() => (id && PAGES[name].one ? PAGES[name].one(page, id, signal) : PAGES[name].all(page)));
}

/** Lists are drawn again while nobody fills a form in them; pages of one thing hold forms and stay. */
async function refresh() {
  const {name, id} = place();
  const typing = document.activeElement && document.activeElement.closest('form');
  const chosen = [...document.querySelectorAll('#page input[type=file]')].some((input) => input.files.length > 0);
  if (id || typing || chosen || document.hidden) return;
  await attempt(() => PAGES[name].all(document.getElementById('page')));
}

document.getElementById('key').addEventListener('submit', (event) => {
  event.preventDefault();
  sessionStorage.setItem(KEY, new FormData(event.currentTarget).get('key'));
  event.currentTarget.hidden = true;
  start();
});

async function start() {
  await attempt(async () => {
    const info = await get('/v1/info');
    document.getElementById('info').textContent =
      info.version + ' · ' + info.compiler.llvm + ' · ' + info.host.cpu + ', ' + info.host.cores + ' cores';
  });
  await show();
}

window.addEventListener('hashchange', show);
setInterval(refresh, PERIOD_MS);
start();
