// Views of the console against answers that no small server gives: graphs of 10,000 nodes, lists of 100,000 rows, names
// that are markup, a phone, a dark page, a keyboard alone.
//   node views.js URL [FOLDER for screenshots]
'use strict';

const assert = require('node:assert');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const {inBrowser, violations, visit} = require('./browser.js');
const {residual, transformer} = require('./made_graphs.js');
const {read_npz, write_npz} = require('../npz.js');

const [url, folder] = process.argv.slice(2);
const EVIL = '<img src=x onerror="window.hurt=1"><script>window.hurt=2</script>"\'`${window.hurt=3}';
const MODEL = 'sha256:' + 'a'.repeat(64), PACKAGE = 'sha256:' + 'b'.repeat(64);
const NOW = '2026-01-02T03:04:05.678Z';

const tensor = (name, shape = ['N', 3, 8, 8]) => ({name, dtype: 'float32', shape});
const model = (name = 'made', more = {}) => ({id: MODEL, name, names: [name], format: 'onnx', size: 12345, inputs: [tensor(name)], outputs: [tensor(name)],
  ops: {Conv: 53, [name]: 1}, parameters: 25e6, created_at: NOW, ...more});
const kernels = (origins) => [{symbol: 'conv_0123456789ab', task_key: 'c'.repeat(64), template: '', tuning_record: '', tuning_reason: 'no records given', verified: 'sample', origins}];
const packaged = (name = 'made', origins = ['node_conv_a_0']) => ({id: PACKAGE, archive: {digest: MODEL, size: 1000}, inputs: [tensor(name)], outputs: [tensor(name)], deployments: [name],
  created_at: NOW, metadata: {target: name, model_digest: MODEL, model_format: 'onnx', opt_level: 3, passes: [], kernels: kernels(origins), options: {}, cpu_features: [], num_steps: 1,
    host_steps: 0, weight_bytes: 1, arena_bytes: 1, worker_workspace_bytes: 1, flops: 1, verify: 'sample', compiler_build: name, members: {[name]: {digest: MODEL, size: 1}}}});
const job = (name, n = 0) => ({id: '01900000-0000-7000-8000-' + String(n).padStart(12, '0'), kind: 'compile', state: 'failed', attempt: 1,
  resolved: {model: MODEL, target: name}, progress: {stage: name, done: 1, total: 2, best_ms: null, eta_s: null}, result: null,
  error: {code: 'operator_not_implemented', detail: name, errors: [{pointer: '/nodes/3', node: name, detail: name}],
    model: {inputs: [], outputs: [], operators: {[name]: 2}, opsets: {}, parameters: 0}}, created_at: NOW, started_at: NOW, finished_at: NOW});
const profile = (origins) => ({outputs: {}, timing: {queue_ms: 0, compute_ms: 1, profile: [
  {step: 'conv_0', function: 'conv_0123456789ab', origins, start_us: 0, duration_us: 900, flops: 1e6, bytes: 1e5},
  {step: 'rest', function: 'rest_0123456789ab', origins: ['node_relu_b_0'], start_us: 900, duration_us: 100, flops: 1e5, bytes: 1e5}]}});

/** Answers of the server in place of its own, by the beginning of the path. */
async function answering(page, answers) {
  await page.route(/\/v[12]\//, async (route) => {
    const {pathname, search} = new URL(route.request().url());
    const key = Object.keys(answers).filter((start) => (decodeURIComponent(pathname) + search).startsWith(start)).sort((a, b) => b.length - a.length)[0];
    if (!key) return route.continue();
    const answer = typeof answers[key] === 'function' ? answers[key](new URL(route.request().url())) : answers[key];
    if (Buffer.isBuffer(answer)) return route.fulfill({contentType: 'application/x-npz', body: answer});
    return route.fulfill(typeof answer === 'string' ? {contentType: 'text/plain', body: answer} : {json: answer});
  });
}

const shot = async (page, name) => { if (folder) await page.screenshot({path: path.join(folder, name + '.png')}); };
const boxes = (page, id) => page.waitForFunction((pane) => document.querySelector(pane + ' canvas')?.dataset.boxes, id).then(() => page.evaluate((pane) =>
  Number(document.querySelector(pane + ' canvas').dataset.boxes), id));

async function largeGraphs(page) {
  const graph = residual(10000);
  await answering(page, {'/v1/models/': model(), ['/v1/models/' + MODEL + '/graph']: graph});
  await page.goto(url + '#models/' + MODEL + '?tab=graph');
  const closed = await boxes(page, '#graph-imported');
  assert.ok(closed > 20 && closed < 400, closed + ' boxes while the blocks are closed');
  assert.deepEqual(await violations(page), [], 'a graph');
  await page.click('button:text-is("Open all blocks")');
  await page.waitForFunction((least) => Number(document.querySelector('#graph-imported canvas').dataset.boxes) > least, 10000);
  await shot(page, 'graph-large');
  await page.click('button:text-is("Close all blocks")');
  await page.waitForFunction((most) => Number(document.querySelector('#graph-imported canvas').dataset.boxes) === most, closed);
  // A node in a closed block is found by its name; its block opens, and the address names it.
  await page.fill('#find', 'conv_b_777');
  await page.waitForSelector('.search [role=status]:has-text("1 node")');
  await page.press('#find', 'Enter');
  await page.waitForSelector('#details:has-text("node_conv_b_777")');
  await page.waitForFunction((before) => Number(document.querySelector('#graph-imported canvas').dataset.boxes) > before, closed);
  assert.match(await page.textContent('#details'), /strides\s*ints\[1, 1\]/);
  assert.match(page.url(), /node=\d+/);
  // The keyboard goes along the edges, and says where it is.
  await page.focus('#graph-imported canvas');
  await page.keyboard.press('ArrowDown');
  await page.waitForSelector('#details:has-text("node_norm_b_777")');
  assert.match(await page.textContent('[role=status].hidden'), /norm_b_777/);
  await page.keyboard.press('ArrowUp');
  await page.waitForSelector('#details:has-text("node_conv_b_777")');
}

/** What reports say of packages stands beside their times. */
async function accuracyOfPackages(page) {
  const id = '01900000-0000-7000-8000-000000000001', none = {items: [], next_cursor: null};
  const row = (of, accuracy) => ({name: 'made', model: MODEL, target: 'llvm', opt_level: 3, state: 'ok', remarks: [], package: {id: of, archive_bytes: 1}, quality: {accuracy}});
  await answering(page, {'/v1/packages/': packaged(), '/v1/packages?': {items: [packaged()], next_cursor: null}, '/v1/jobs?kind=benchmark': none,
    '/v1/jobs?kind=report': {items: [{...job('report'), id, kind: 'report', state: 'succeeded', error: null}], next_cursor: null},
    ['/v1/jobs/' + id + '/report']: {job: id, state: 'succeeded', samples: 64, configurations: [row('sha256:' + 'd'.repeat(64), 0.5), row(PACKAGE, 0.984375)]}});
  await page.goto(url + '#compare?p=' + PACKAGE);
  await page.waitForSelector('#page td:has-text("98.44 %")');
  const [csv] = await Promise.all([page.waitForEvent('download'), page.click('button:text-is("CSV")')]);
  assert.match(fs.readFileSync(await csv.path(), 'utf8'), /accuracy,output_difference[^]*,0\.984375,/);
  assert.deepEqual(await violations(page), [], 'accuracy');
}

async function namedBlocks(page) {
  await answering(page, {'/v1/models/': model(), ['/v1/models/' + MODEL + '/graph']: transformer(24)});
  await page.goto(url + '#models/' + MODEL + '?tab=graph');
  const closed = await boxes(page, '#graph-imported');
  assert.ok(closed < 60, closed + ' boxes for 24 layers');
  assert.match(await page.textContent('.legend'), /blocks/);
  await shot(page, 'graph-blocks');
}

async function sideBySide(page) {
  const optimized = {...residual(30), stage: 'optimized', target: 'llvm'};
  optimized.nodes[0].origins.push('node_norm_a_0');
  await answering(page, {'/v1/models/': model(), ['/v1/models/' + MODEL + '/graph']: residual(30), ['/v1/models/' + MODEL + '/graph?stage=optimized']: optimized,
    ['/v1/packages/' + PACKAGE]: packaged('made', ['node_conv_a_0', 'node_norm_a_0']), ['/v1/packages/' + PACKAGE + '/run']: profile(['node_conv_a_0', 'node_norm_a_0']),
    ['/v1/packages/' + PACKAGE + '/code']: '# conv_0123456789ab\nloops of the kernel\n# rest_0123456789ab\nother loops\n'});
  await page.goto(url + '#packages/' + PACKAGE + '?tab=graph&stage=both');
  await boxes(page, '#graph-imported');
  await boxes(page, '#graph-optimized');
  await page.click('button:text-is("Colour by time")');
  await page.waitForSelector('p:has-text("Darker took longer")');
  await page.fill('#find', 'node_norm_a_0');
  await page.press('#find', 'Enter');
  await page.waitForSelector('#details:has-text("90.0 %")');
  await page.click('#details summary:text-is("loop nests")');
  await page.waitForSelector('#details pre:has-text("loops of the kernel")');
  assert.doesNotMatch(await page.textContent('#details pre'), /other loops/);
  assert.deepEqual(await violations(page), [], 'two graphs');
  await shot(page, 'graph-both');
}

/** Nodes that keep a large model from being imported are found, in blocks too; their names are a stranger's. */
async function refusedGraph(page) {
  const graph = residual(900, (block, part) => part + '_' + block + (part === 'conv_b' ? EVIL : ''));
  const wrong = graph.nodes.filter((node) => node.origins[0].includes(EVIL)).slice(0, 7);
  for (const node of wrong) node.refused = ['op ' + EVIL + ': not implemented'];
  // A kind of operator is one error, wherever it stands.
  const body = {code: 'operator_not_implemented', detail: EVIL, errors: [{pointer: wrong[0].origins[0], detail: 'op ' + EVIL + ', 7 nodes'}],
    model: {inputs: [], outputs: [], operators: {[EVIL]: 7}, opsets: {}, parameters: 1, graph}};
  await page.route(/\/v1\/models\?name=/, (route) => route.fulfill({status: 422, contentType: 'application/problem+json', body: JSON.stringify(body)}));
  await page.goto(url);
  await page.setInputFiles('#upload [name=file]', {name: 'large.onnx', mimeType: 'application/octet-stream', buffer: Buffer.from('any')});
  await page.click('#upload button');
  await page.waitForSelector('#refused h2:has-text("7 of ' + graph.nodes.length + ' nodes")');
  const shown = await boxes(page, '#graph-refused');
  assert.ok(shown < 200, shown + ' boxes: the block of the first node alone is open');
  await page.click('#refused li:nth-child(7) button');
  await page.waitForFunction((before) => Number(document.querySelector('#graph-refused canvas').dataset.boxes) > before, shown);
  assert.match(await page.textContent('#refused .failed'), /onerror.*not implemented/);
  assert.equal(await page.evaluate(() => document.querySelectorAll('#refused img, #refused script').length + Number(window.hurt ?? 0)), 0);
  assert.deepEqual(await violations(page), [], 'a large model that is refused');
  await shot(page, 'refused');
}

/** Pages of a list that goes on; a row that comes while it is read waits. */
async function longLists(page) {
  let fresh = 0;
  const total = 100000, shown = 50;
  await answering(page, {'/v1/jobs': ({searchParams}) => {
    const start = Number(searchParams.get('cursor') ?? 0);
    const items = Array.from({length: shown}, (_, i) => job('row ' + (start + i), total - start - i + (start === 0 ? fresh : 0)));
    return {items, next_cursor: start + shown < total ? String(start + shown) : null};
  }});
  await page.goto(url + '#jobs');
  await page.waitForSelector('td:has-text("row 49")');
  await page.click('button:text-is("Next page")');
  await page.waitForSelector('td:has-text("row 99")');
  assert.equal(await page.locator('tbody tr').count(), shown);
  await page.goBack();
  await page.waitForSelector('td:has-text("row 49")');
  const first = await page.$('tbody tr');
  fresh = 1;
  await page.waitForSelector('button:has-text("The list has changed")');
  assert.match(await page.textContent('tbody tr'), /row 0\b/, 'a row that comes while the list is read waits');
  await page.click('button:has-text("The list has changed")');
  await page.waitForSelector('button:has-text("The list has changed")', {state: 'detached'});
  assert.ok(await first.evaluate((row) => row.isConnected), 'rows that stay are the same rows');
  await visit(page, '#jobs?cursor=' + (total - shown));
  await page.waitForSelector('td:has-text("row ' + (total - 1) + '")');
  assert.equal(await page.locator('button:text-is("Next page")').count(), 0);
}

/** Shares of requests, placement and the way back: what is sent for what a person fills in. */
async function versionsAndPlaces(page) {
  const versions = {1: {package: PACKAGE, state: 'ready', reason: ''}, 2: {package: PACKAGE, state: 'ready', reason: ''}};
  const item = {name: 'placed', versions, default_version: '2', inputs: [tensor('x')], outputs: [tensor('y')], created_at: NOW,
    previous: {version: '1', package: PACKAGE}, replicas: {a: {state: 'ready', reason: ''}, b: {state: 'unloaded', reason: 'labels'}}};
  await answering(page, {'/v1/deployments/placed': () => item, '/v1/deployments/placed/versions/2': {package: PACKAGE, version: '2', keep_versions: 1}});
  const sent = async (method, button) => {
    const [request] = await Promise.all([page.waitForRequest((one) => one.method() === method), page.click(button)]);
    return [new URL(request.url()).pathname, request.postDataJSON()];
  };
  await page.goto(url + '#deployments/placed?tab=versions');
  await page.waitForSelector('h2:text-is("Replicas")');
  await page.fill('#weights [name=weight-1]', '9');
  await page.fill('#weights [name=weight-2]', '1');
  item.weights = {1: 9, 2: 1};
  assert.deepEqual(await sent('PUT', '#weights button.primary'), ['/v1/deployments/placed/weights', {weights: {1: 9, 2: 1}}]);
  await page.waitForSelector('td:text-is("90.0 %")');
  await page.selectOption('#placement [name=place]', 'demand');
  await page.fill('#placement [name=idle_s]', '60');
  assert.deepEqual(await violations(page), [], 'versions and where they are loaded');
  await shot(page, 'versions');
  // The other version stays loaded, and keeps its share.
  const put = {package: PACKAGE, version: '2', keep_versions: 2, weights: {1: 9, 2: 1}};
  assert.deepEqual(await sent('PUT', '#placement button.primary'), ['/v1/deployments/placed', {...put, placement: {mode: 'demand', idle_s: 60}}]);
  await page.selectOption('#placement [name=place]', 'labels');
  await page.fill('#placement [name=place_labels]', 'zone=a, gpu=no');
  assert.deepEqual(await sent('PUT', '#placement button.primary'), ['/v1/deployments/placed', {...put, placement: {mode: 'labels', labels: ['zone=a', 'gpu=no']}}]);
  assert.deepEqual(await sent('POST', 'button:text-is("Back to version 1")'), ['/v1/deployments/placed/rollback', null]);
}

async function hostileNames(page, wrong) {
  const graph = residual(4, () => EVIL + Math.random());
  const deployment = {name: EVIL, versions: {1: {package: PACKAGE, state: 'failed', reason: EVIL}}, default_version: '1', inputs: [tensor(EVIL)], outputs: [tensor(EVIL)], created_at: NOW,
    replicas: {[EVIL]: {state: 'failed', reason: EVIL}}};
  const list = (item) => ({items: [item], next_cursor: null});
  await answering(page, {'/v1/models': list(model(EVIL)), '/v1/models/': model(EVIL), ['/v1/models/' + MODEL + '/graph']: graph,
    '/v1/jobs': list(job(EVIL)), '/v1/jobs/': job(EVIL), '/v1/packages': list(packaged(EVIL)), '/v1/packages/': packaged(EVIL, [EVIL]),
    ['/v1/packages/' + PACKAGE + '/run']: profile([EVIL]), ['/v1/packages/' + PACKAGE + '/code']: '# conv_0123456789ab\n' + EVIL,
    '/v1/deployments': list(deployment), '/v1/deployments/': deployment,
    ['/v1/deployments/' + EVIL + '/traffic']: {since: NOW, requests: 1, failed: 0, p50_ms: 1, p95_ms: 1, p99_ms: 1, minutes: []},
    '/v1/keys': list({name: EVIL, scopes: [EVIL], source: 'catalog', created_at: NOW, expires_at: null}),
    '/v1/audit': list({ts: NOW, request_id: EVIL, caller: EVIL, peer: EVIL, client: EVIL, method: 'POST', target: EVIL, status: 200}),
    ['/v1/jobs/' + job(EVIL).id + '/events']: 'id: 1\nevent: end\ndata: {}\n\n'});
  await page.goto(url);
  const seen = async (hash) => {
    await visit(page, hash, '#page h1');
    await page.waitForFunction(() => document.getElementById('app').textContent.includes('onerror') || document.querySelector('[data-boxes]:not([data-boxes=""])'))
      .catch(async (problem) => { throw new Error(hash + ': ' + await page.textContent('#app'), {cause: problem}); });
    const made = await page.evaluate(() => document.querySelectorAll('#page img, #page script, #page iframe').length);
    assert.equal(made, 0, hash);
  };
  for (const view of ['models', 'jobs', 'packages', 'deployments', 'keys', 'audit', 'models/' + MODEL, 'models/' + MODEL + '?tab=graph&node=1', 'models/' + MODEL + '?tab=build',
    'jobs/' + job(EVIL).id, 'packages/' + PACKAGE, 'packages/' + PACKAGE + '?tab=graph&stage=imported&node=1', 'packages/' + PACKAGE + '?tab=try',
    'deployments/' + encodeURIComponent(EVIL), 'deployments/' + encodeURIComponent(EVIL) + '?tab=versions']) await seen('#' + view);
  await page.goto(url + '#' + encodeURIComponent(EVIL) + '/' + EVIL);
  await page.waitForSelector('#page h1');
  assert.equal(await page.evaluate(() => window.hurt), undefined);
  // Even a fault of the console could not make markup of a text.
  const refused = await page.evaluate(() => { try { document.body.innerHTML = '<b>x</b>'; return false; } catch { return true; } });
  assert.ok(refused, 'the page takes texts as markup');
  // Chromium says that it did.
  assert.match(wrong.pop(), /TrustedHTML/);
}

/** An answer of arrays. */
const npzOf = (arrays) => inFolder((file) => {
  write_npz(file, new Map(Object.entries(arrays)));
  return fs.readFileSync(file);
});

/** What a request brought. */
const arraysOf = (body) => inFolder((file) => {
  fs.writeFileSync(file, body);
  return read_npz(file);
});

function inFolder(work) {
  const home = fs.mkdtempSync(path.join(os.tmpdir(), 'npz-'));
  try {
    return work(path.join(home, 'a.npz'));
  } finally {
    fs.rmSync(home, {recursive: true});
  }
}

const floats = (dims, values) => ({type: 'float32', dims, data: Float32Array.from(values)});
const PICTURE = path.join(__dirname, '../../models/pictures/7.png');

/** Boxes with their masks, rows of boxes, and a map of classes, drawn over the picture that was sent. */
async function seeing(page) {
  const half = Array.from({length: 64}, (_, i) => (i % 8 < 4 ? 1 : 0));
  const answers = {
    separate: npzOf({boxes: floats([2, 4], [0, 0, 4, 8, 2, 2, 6, 6]), scores: floats([2], [0.9, 0.3]), labels: {type: 'int64', dims: [2], data: BigInt64Array.from([5n, 7n])},
      masks: floats([2, 1, 8, 8], [...half, ...half])}),
    rows: npzOf({output0: floats([1, 3, 6], [0, 0, 8, 8, 0.95, 1, 1, 1, 5, 5, 0.8, 2, 0, 0, 0, 0, 0, 0])}),
    classes: npzOf({scores: floats([1, 2, 8, 8], [...half.map((value) => 1 - value), ...half])}),
    neither: npzOf({logits: floats([1, 10], Array(10).fill(0))}),
  };
  let given = 'separate', body = null;
  await answering(page, {['/v1/packages/' + PACKAGE]: packaged('made'), ['/v1/packages/' + PACKAGE + '/run']: () => answers[given]});
  page.on('request', (request) => { if (request.url().includes('/run')) body = request.postDataBuffer(); });
  await page.goto(url + '#packages/' + PACKAGE + '?tab=try');
  await page.setInputFiles('#vision [name=seen]', PICTURE);
  // The page says what it found, and draws it after that.
  const see = async (kind, words, drawn) => {
    given = kind;
    await page.click('#vision button.primary');
    await page.waitForSelector('#vision .answer p:has-text("' + words + '")');
    await page.waitForFunction((wanted) => {
      const {boxes, masks} = document.querySelector('#vision canvas').dataset;
      return boxes === wanted.boxes && masks === wanted.masks;
    }, drawn);
  };
  await see('separate', '2 boxes', {boxes: '1', masks: '1'});
  assert.match(await page.textContent('#vision tbody'), /5.*90.*0.*50.*100/s);
  const tensor = arraysOf(body).get('made');
  assert.deepEqual([tensor.type, tensor.dims], ['float32', [1, 3, 8, 8]]);
  assert.ok(Math.max(...tensor.data) > 0.5 && Math.max(...tensor.data) <= 1 && Math.min(...tensor.data) >= 0, 'values of 0 to 1');
  assert.deepEqual(await violations(page), [], 'boxes');
  await shot(page, 'boxes');
  await page.fill('#vision [type=number]', '0.2');
  await page.waitForFunction(() => document.querySelector('#vision canvas').dataset.boxes === '2');
  await see('rows', '3 boxes', {boxes: '2', masks: '0'});
  await see('classes', 'A mask of 2 classes', {boxes: '0', masks: '1'});
  // The left half is tinted, the right one is the picture's own grey.
  const points = await page.evaluate(() => {
    const canvas = document.querySelector('#vision canvas'), {width, height} = canvas;
    const at = (x) => [...canvas.getContext('2d').getImageData(x, height / 2, 1, 1).data];
    return [at(2), at(width - 3)];
  });
  const tinted = ([red, green, blue]) => Math.max(red, green, blue) - Math.min(red, green, blue) > 20;
  assert.deepEqual(points.map(tinted), [true, false]);
  await see('neither', 'neither boxes nor masks', {boxes: '0', masks: '0'});
}

async function smallAndDark(page) {
  await answering(page, {'/v1/models': {items: [model('a'.repeat(100))], next_cursor: null}, '/v1/models/': model('a'.repeat(100)),
    ['/v1/models/' + MODEL + '/graph']: residual(30)});
  for (const view of ['models', 'models/' + MODEL, 'models/' + MODEL + '?tab=graph', 'models/' + MODEL + '?tab=build', 'jobs', 'packages', 'deployments', 'store', 'health', 'compare', 'audit', 'keys']) {
    await visit(page, '#' + view);
    const [wide, window] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
    assert.ok(wide <= window, view + ' is ' + wide + ' wide on a screen of ' + window);
    assert.deepEqual(await violations(page), [], view);
    await shot(page, 'phone-' + view.replace(/\W+/g, '-').replace(/a{20,}/, ''));
  }
}

/** An address that changes as soon as there is a page, before the page listens to it, is followed. */
async function earlyAddresses(page) {
  for (let i = 0; i < 10; ++i) {
    await page.goto(url + '#models');
    await page.reload({waitUntil: 'commit'});
    await page.evaluate(() => new Promise((done) => {
      const leave = () => {
        if (!document.querySelector('#page')) return;
        seen.disconnect();
        location.hash = '#health';
        done();
      };
      const seen = new MutationObserver(leave);
      seen.observe(document, {subtree: true, childList: true});
      leave();
    }));
    await page.waitForSelector('h1:text-is("Health")');
  }
}

/** Without a mouse: the skip link, the sections, a form. */
async function keyboardAlone(page) {
  await page.goto(url + '#store');
  await page.waitForSelector('#page h1');
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate(() => document.activeElement.className), 'skip');
  await page.keyboard.press('Enter');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'main');
  await page.focus('nav a[href="#health"]');
  await page.keyboard.press('Enter');
  await page.waitForSelector('h1:text-is("Health")');
  await page.waitForFunction(() => document.activeElement.id === 'main');
}

async function main() {
  const only = process.env.CONSOLE_TEST_ONLY;
  for (const test of [largeGraphs, refusedGraph, accuracyOfPackages, namedBlocks, sideBySide, longLists, versionsAndPlaces, hostileNames, seeing, earlyAddresses, keyboardAlone]) if (!only || only === test.name) await inBrowser(test);
  if (only && only !== 'smallAndDark') return;
  await inBrowser(async (page) => {
    await page.goto(url);
    await smallAndDark(page);
  }, {viewport: {width: 390, height: 844}, colorScheme: 'dark', hasTouch: true});
}

main().then(() => console.log('the views work'));
