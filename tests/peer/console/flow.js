// Uses the console at URL as a person would, in Chromium: signs in, takes the sample model, drops a broken file, tunes,
// deploys the package, classifies a picture, and looks at every other view. Exits with 0 when all of it was seen.
//   node flow.js URL KEY MODEL.onnx PICTURE.png LABEL [FOLDER for screenshots]
'use strict';

const assert = require('node:assert');
const {execFileSync} = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const {inBrowser, violations, visit} = require('./browser.js');
const {strangeModel} = require('./strange_model.js');
const {write_npz} = require('../npz.js');

const [url, key, model, picture, label, folder] = process.argv.slice(2);
// Each stands for a digit; one looks like markup.
const LABELS = Array.from({length: 10}, (_, digit) => '<i>' + digit + '</i>');

async function signIn(page) {
  await page.goto(url);
  await page.fill('#key [name=key]', key);
  await page.click('#key button');
  await page.waitForSelector('.empty');
  assert.deepEqual(await violations(page), [], 'the empty console');
  // Wherever the reader looks first, the sample model is one click away.
  for (const view of ['jobs', 'packages', 'deployments', 'compare', 'models']) {
    await visit(page, '#' + view, '.empty');
    assert.equal(await page.locator('.empty button:text-is("Import the sample model")').count(), 1, view);
  }
}

async function importModels(page) {
  await page.click('button:text-is("Import the sample model")');
  await page.waitForSelector('h1:has-text("digits")');
  await page.click('nav a[href="#models"]');
  await page.setInputFiles('#upload [name=file]', {name: 'broken.onnx', mimeType: 'application/octet-stream', buffer: Buffer.from('no model')});
  assert.equal(await page.inputValue('#upload [name=name]'), 'broken');
  await page.click('#upload button');
  await page.waitForSelector('#error');
  assert.deepEqual(await violations(page), [], 'an error');
  await dropFile(page, path.basename(model), fs.readFileSync(model));
  await page.waitForSelector('h1:has-text("digits")');
  assert.equal(await page.locator('#error').count(), 0, 'the error of the broken file is still there');
  assert.match(await page.textContent('dd'), /image float32\[N, 1, 28, 28\]/);
}

/** What cannot be imported is red in the model's graph, and says why. */
async function refusedModel(page) {
  await dropFile(page, 'strange.onnx', strangeModel());
  await page.waitForSelector('#refused h2:has-text("One of 3 nodes cannot be imported")');
  await page.waitForSelector('#refused .failed:has-text("not implemented")');
  await page.waitForFunction(() => document.querySelector('#refused canvas')?.dataset.drawn);
  const isRed = () => page.evaluate(() => {
    const canvas = document.querySelector('#refused canvas'), wanted = getComputedStyle(document.querySelector('#refused .failed')).color.match(/\d+/g).map(Number);
    const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    let found = 0;
    for (let i = 0; i < data.length; i += 4) if (data[i + 3] === 255 && wanted.every((value, c) => Math.abs(data[i + c] - value) < 4)) ++found;
    return found > 50;
  });
  assert.ok(await isRed(), 'the node is not red');
  await page.click('#refused li button:has-text("OddOperator · odd")');
  assert.deepEqual(await violations(page), [], 'a model that is refused');
  // So it is in files of other formats, of which an error names each kind of operator once.
  for (const [file, chosen] of [['tflite_ops/missing.tflite', 'SKIP_GRAM'], ['keras/lambda.keras', 'Lambda']]) {
    await dropFile(page, path.basename(file), fs.readFileSync(path.join(__dirname, '../../fixtures', file)));
    await page.click('#refused li button:has-text("' + chosen + '")');
    await page.waitForSelector('#refused .failed:has-text("' + chosen + '")');
    await page.waitForFunction(() => document.querySelector('#refused canvas')?.dataset.drawn);
    assert.ok(await isRed(), 'the node of ' + file + ' is not red');
    if (folder) await page.screenshot({path: path.join(folder, 'refused-' + path.extname(file).slice(1) + '.png')});
  }
  await visit(page, '#models', 'td');
  await page.waitForSelector('#refused', {state: 'detached'});
}

/** As if a file of the desktop were dropped in the middle of the page. */
async function dropFile(page, name, bytes, type = '') {
  const data = await page.evaluateHandle(([title, kind, text]) => {
    const transfer = new DataTransfer();
    const raw = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    transfer.items.add(new File([raw], title, {type: kind}));
    return transfer;
  }, [name, type, bytes.toString('base64')]);
  await page.dispatchEvent('body', 'dragover', {dataTransfer: data});
  await page.waitForSelector('.drop');
  await page.dispatchEvent('body', 'drop', {dataTransfer: data});
  await page.waitForSelector('.drop', {state: 'detached'});
}

async function openModel(page) {
  await page.click('td a:text-is("digits")');
  await page.waitForSelector('h1:has-text("digits")');
}

async function tuneModel(page) {
  await page.click('.tabs a:text-is("Compile or tune")');
  await page.selectOption('#job [name=kind]', 'tune');
  await page.waitForSelector('.aside:has-text("Vectors of")');
  await page.fill('#job [name=trials]', '12');
  await page.fill('#job [name=dim-N]', '1');
  assert.deepEqual(await violations(page), [], 'the form of a job');
  await page.click('#job button.primary');
  await page.waitForSelector('#curve .chart');
  await page.waitForSelector('.state.succeeded');
  await page.waitForSelector('button.link:text-is("conv_first_relu")');
  await page.click('button.link:text-is("conv_first_relu")');
  await page.waitForSelector('figcaption:has-text("conv_first_relu: default")');
  await page.waitForSelector('#roofline circle');
  if (folder) await pictures(page);
  assert.match(await page.textContent('#roofline figcaption'), /At most [\d.,]+ GFLOP\/s.*reaches \d+ % of its bound/);
  await page.click('summary:text-is("Log")');
  await page.waitForFunction(() => document.querySelector('#log').textContent.includes('child-tune'));
  assert.deepEqual(await violations(page), [], 'a job');
  await page.click('text=Open the package');
}

/** Those of the documents. */
async function pictures(page) {
  await page.evaluate(() => window.scrollTo(0, 0));
  await page.screenshot({path: path.join(folder, 'console.png'), fullPage: true});
  await (await page.$('#roofline')).screenshot({path: path.join(folder, 'roofline.png')});
}

async function lookAtPackage(page) {
  await page.click('.tabs a:text-is("Code")');
  await page.click('button:text-is("Show")');
  await page.waitForFunction(() => document.querySelector('#code')?.textContent.includes('graph'));
  await page.selectOption('[name=stage]', 'asm');
  const kernel = await page.evaluate(() => [...document.querySelectorAll('[name=kernel] option')][2].value);
  await page.selectOption('[name=kernel]', kernel);
  await page.click('button:text-is("Show")');
  await page.waitForFunction((name) => document.querySelector('#code')?.textContent.startsWith('# ' + name + '\n'), kernel);
  assert.equal((await page.textContent('#code')).match(/^# /gm).length, 1, 'the code of one kernel alone');
  assert.deepEqual(await violations(page), [], 'code');
  await page.click('.tabs a:text-is("Layers")');
  await page.click('button:text-is("Measure the layers")');
  await page.waitForSelector('td a:has-text("conv_first_relu")');
  assert.deepEqual(await violations(page), [], 'layers');
  // The graph: how much of the machine each kernel uses, and how it is computed.
  await page.click('.tabs a:text-is("Graph")');
  await page.click('button:text-is("Colour by part of the peak")');
  await page.waitForSelector('p:has-text("that this machine computes at most")');
  await page.fill('#find', 'conv_first');
  await page.press('#find', 'Enter');
  await page.waitForSelector('#details p:has-text("of the machine\'s peak")');
  assert.match(await page.textContent('#details'), /GFLOP\/s.*[\d.]+ % of the machine's peak, [\d.]+ % of what its reads and writes allow/s);
  const {conv} = {conv: await page.textContent('#details li a')};
  for (const [stage, words] of [['tensor expressions and schedule', conv], ['loop nests', 'for'], ['machine code', 'ret']]) {
    await page.click('#details summary:text-is("' + stage + '")');
    await page.waitForSelector('#details pre[aria-label="' + stage + '"]:has-text("' + words + '")');
  }
  assert.deepEqual(await violations(page), [], 'a kernel');
}

async function deployPackage(page) {
  await page.click('.tabs a:text-is("Serve")');
  await page.fill('#deploy [name=name]', 'digits');
  await page.check('#deploy [name=pictures]');
  assert.equal(await page.inputValue('#deploy [name=crop]'), '28');
  await page.fill('#deploy [name=labels]', LABELS.join('\n'));
  assert.deepEqual(await violations(page), [], 'the form of a deployment');
  await page.click('#deploy button.primary');
}

/** The extents of the logits in an archive, as numpy reads it. */
const logitsIn = (file) => execFileSync('/usr/bin/python3', ['-c', 'import numpy, sys; print(numpy.load(sys.argv[1])["logits"].shape)', file], {encoding: 'utf8'}).trim();

/** What is shown as a program for elsewhere runs there, with what it reads beside it. */
async function runSnippets(page, files, expected) {
  const home = fs.mkdtempSync(path.join(os.tmpdir(), 'snippets-'));
  try {
    for (const [name, bytes] of Object.entries(files)) fs.writeFileSync(path.join(home, name), bytes);
    const programs = {curl: ['bash', 'snippet.sh'], Python: ['/usr/bin/python3', 'snippet.py'], JavaScript: ['node', 'snippet.mjs']};
    for (const [language, [program, file]] of Object.entries(programs)) {
      await page.click('#snippets button:text-is("' + language + '")');
      fs.writeFileSync(path.join(home, file), await page.textContent('#snippets pre'));
      const said = execFileSync(program, [file], {cwd: home, env: {...process.env, TENSORMILL_KEY: key, no_proxy: '*', NO_PROXY: '*'}, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe']});
      const made = path.join(home, 'outputs.npz');
      if (fs.existsSync(made)) {
        assert.equal(logitsIn(made), '(1, 10)', language);
        fs.rmSync(made);
      } else {
        assert.match(said, expected, language);
      }
    }
  } finally {
    fs.rmSync(home, {recursive: true});
  }
}

/** Arrays in an archive, in and out. */
async function runNpz(page) {
  const home = fs.mkdtempSync(path.join(os.tmpdir(), 'npz-'));
  try {
    const archive = path.join(home, 'in.npz'), kept = path.join(home, 'out.npz');
    write_npz(archive, new Map([['image', {type: 'float32', dims: [1, 1, 28, 28], data: Float32Array.from({length: 784}, (_, i) => i / 784)}]]));
    await page.setInputFiles('#random [name=npz]', archive);
    await page.click('#random button.primary');
    await page.waitForFunction(() => document.querySelector('#snippets pre')?.textContent.includes('in.npz'));
    const [saved] = await Promise.all([page.waitForEvent('download'), page.click('button:text-is("Save the outputs as NPZ")')]);
    await saved.saveAs(kept);
    assert.equal(logitsIn(kept), '(1, 10)');
    await runSnippets(page, {'in.npz': fs.readFileSync(archive)}, /logits/);
  } finally {
    fs.rmSync(home, {recursive: true});
  }
}

/** As if the picture came from the clipboard. */
async function paste(page, name, bytes, type) {
  await page.evaluate(([title, kind, text]) => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))], title, {type: kind}));
    window.dispatchEvent(new ClipboardEvent('paste', {clipboardData: transfer, bubbles: true, cancelable: true}));
  }, [name, type, bytes.toString('base64')]);
}

async function tryDeployment(page) {
  await page.waitForSelector('#classify');
  await dropFile(page, 'digit.png', fs.readFileSync(picture), 'image/png');
  await page.waitForSelector('#classify meter');
  assert.equal(await page.textContent('#classify td'), LABELS[Number(label)]);
  await paste(page, 'pasted.png', fs.readFileSync(picture), 'image/png');
  await page.waitForFunction(() => document.querySelector('#classify canvas').getAttribute('aria-label').includes('pasted.png'));
  await page.waitForSelector('#classify meter');
  await runSnippets(page, {'pasted.png': fs.readFileSync(picture)}, new RegExp('label.*' + LABELS[Number(label)].replace('/', '.{1,6}')));
  await runNpz(page);
  await page.click('#random button.primary');
  await page.waitForSelector('#random p:has-text("Version 1 answered")');
  await page.waitForSelector('#random td:text-is("logits")');
  // A picture as the tensor that the model takes: this server reads the archive that the page made.
  await page.setInputFiles('#vision [name=seen]', picture);
  await page.click('#vision button.primary');
  await page.waitForSelector('#vision td:text-is("logits")');
  await page.click('summary:has-text("Run on JSON")');
  await page.click('#json button.primary');
  await page.waitForFunction(() => document.querySelector('#jsonanswer')?.textContent.includes('"logits"'));
  // The request itself is in the program.
  await runSnippets(page, {}, /logits/);
  await page.fill('#times', '20');
  await page.click('button:text-is("Repeat")');
  await page.waitForSelector('#histogram:has-text("20 requests")');
  await page.click('#snippets button:text-is("Python")');
  assert.match(await page.textContent('#snippets pre'), /v2\/models\/digits\/infer[^]*TENSORMILL_KEY/);
  assert.deepEqual(await violations(page), [], 'trying');
  assert.equal(await page.locator('video').count(), 0, 'the camera is off until it is asked for');
  await page.click('button:text-is("Camera")');
  await page.waitForFunction(() => document.querySelector('video')?.videoWidth > 0);
  await page.click('button:text-is("Take the picture")');
  await page.waitForFunction(() => document.querySelector('#classify canvas').getAttribute('aria-label').includes('camera.jpg'));
  await page.waitForSelector('video', {state: 'detached'});
  await page.waitForSelector('#classify meter');
}

async function rollBack(page) {
  await visit(page, '#packages');
  await page.click('td a[href^="#packages/"]');
  await page.click('.tabs a:text-is("Serve")');
  await page.fill('#deploy [name=name]', 'digits');
  await page.press('#deploy [name=name]', 'Tab');
  await page.waitForFunction(() => document.querySelector('#deploy [name=version]').value === '2');
  await page.click('#deploy button.primary');
  await page.waitForSelector('.tabs a:text-is("Versions")');
  await page.click('.tabs a:text-is("Versions")');
  await page.click('button:text-is("Serve version 1")');
  await page.waitForSelector('button:text-is("Serve version 2")');
  await page.click('.tabs a:text-is("Try")');
  await page.setInputFiles('#classify [name=picture]', picture);
  await page.click('#classify button.primary');
  await page.waitForSelector('#classify meter');
  // The labels came back with the version.
  assert.equal(await page.textContent('#classify td'), LABELS[Number(label)]);
  await page.click('.tabs a:text-is("Traffic")');
  await page.waitForSelector('figcaption:has-text("p95")');
  assert.deepEqual(await violations(page), [], 'traffic');
}

/** A second package, as a program makes it. */
async function compileUnoptimized(page) {
  const answer = await page.evaluate(async () => {
    const headers = {'Content-Type': 'application/json', Authorization: 'Bearer ' + sessionStorage.getItem('tensormill-key')};
    const body = {kind: 'compile', model: 'digits', target: 'llvm -mcpu=native', opt_level: 0, input_shapes: {image: [1, 1, 28, 28]}};
    const {id} = await (await fetch('/v1/jobs', {method: 'POST', headers, body: JSON.stringify(body)})).json();
    for (;;) {
      const job = await (await fetch('/v1/jobs/' + id + '/events', {headers})).text().then(() => fetch('/v1/jobs/' + id, {headers})).then((end) => end.json());
      if (job.state === 'succeeded' || job.error) return job;
    }
  });
  return answer.result.package;
}

async function comparePackages(page) {
  const other = await compileUnoptimized(page);
  await visit(page, '#packages', 'td');
  const ids = await page.$$eval('td a[href^="#packages/"]', (links) => links.map((link) => decodeURIComponent(link.hash.slice(10))));
  const [id] = ids.filter((one) => one !== other);
  await visit(page, '#compare');
  for (const [i, one] of [id, other].entries()) {
    await page.selectOption('#add', one);
    await page.waitForFunction((rows) => document.querySelectorAll('[aria-label=Compare] tbody tr').length === rows, i + 1);
  }
  await page.click('button:text-is("Measure all")');
  await page.waitForFunction(() => [...document.querySelectorAll('[aria-label=Compare] tbody tr')].every((row) => /\d (ms|µs)/.test(row.textContent)));
  await page.click('button:text-is("Compare outputs")');
  await page.waitForFunction(() => [...document.querySelectorAll('[aria-label=Compare] tbody tr')].every((row) => /^(0|[\d.e-]+)$/.test(row.cells[row.cells.length - 2].textContent)));
  await page.click('button:text-is("Compare layers")');
  await page.waitForSelector('h2:text-is("Time by layer")');
  // By how much each layer of the second takes longer or less.
  const layers = page.locator('[role=region][aria-label="Time by layer"] tbody');
  assert.match(await layers.textContent(), /[+−][\d.]+ (ms|µs) \([+−][\d.]+ %\)/);
  assert.ok(page.url().includes('compare?p=sha256'), 'the choice is in the address');
  const [csv] = await Promise.all([page.waitForEvent('download'), page.locator('button:text-is("CSV")').first().click()]);
  assert.match(fs.readFileSync(await csv.path(), 'utf8'), /^package,target,opt_level,median_ms,p95_ms[^]*sha256:[^]*sha256:/);
  assert.deepEqual(await violations(page), [], 'comparing');
  // Whoever is sent the address sees the same packages and times.
  await page.reload();
  await page.waitForFunction(() => document.querySelectorAll('[aria-label=Compare] tbody tr').length === 2 && [...document.querySelectorAll('[aria-label=Compare] tbody tr')].every((row) => /\d (ms|µs)/.test(row.textContent)));
}

/** A file of TFLite, whose integers may be rounded in two ways; the other model has no such choice. */
async function compileExactly(page) {
  await visit(page, '#models', 'td');
  await page.click('td a:text-is("digits")');
  await page.click('.tabs a:text-is("Compile or tune")');
  await page.waitForSelector('#job .hint:has-text("takes float32 and gives float32")');
  assert.equal(await page.locator('#job [name=quantized]').count(), 0);
  const file = path.join(path.dirname(model), '../fixtures/tflite/described_int8.tflite');
  await dropFile(page, path.basename(file), fs.readFileSync(file));
  await page.waitForSelector('h1:has-text("described_int8")');
  await page.click('.tabs a:text-is("Compile or tune")');
  await page.waitForSelector('#job label:has-text("takes int8 and gives int8")');
  await page.selectOption('#job [name=quantized]', 'exact');
  assert.deepEqual(await violations(page), [], 'the form of a job with integers');
  await page.click('#job button.primary');
  await page.click('text=Open the package');
  await page.waitForSelector('dd:has-text("rounded exactly")');
}

async function visitAll(page) {
  const rows = {models: /digits/, jobs: /succeeded/, packages: /float32\[1, 1, 28, 28\]/, deployments: /ready/, store: /Blobs/,
    keys: /person/, audit: /\/v1\/deployments\/digits/, health: /seccomp/};
  for (const [name, text] of Object.entries(rows)) {
    await page.click('nav a[href="#' + name + '"]');
    await page.waitForFunction(([source]) => new RegExp(source).test(document.getElementById('page').textContent), [text.source]);
    assert.deepEqual(await violations(page), [], name);
    if (folder) await page.screenshot({path: path.join(folder, name + '.png')});
  }
  await page.goBack();
  await page.waitForSelector('h1:text-is("Audit")');
  await page.click('nav a[href="#keys"]');
  await page.fill('#newkey [name=name]', 'guest');
  await page.check('#newkey [name=infer]');
  await page.click('#newkey button.primary');
  await page.waitForSelector('.panel.good pre');
  await page.click('[aria-label="Revoke guest"]');
  await page.waitForSelector('[aria-label="Revoke guest"]', {state: 'detached'});
  await page.click('nav a[href="#store"]');
  await page.click('button:text-is("What is not needed?")');
  await page.waitForSelector('text=Would remove');
  await page.click('nav a[href="#deployments"]');
  await page.click('[aria-label="Delete digits"]');
  await page.waitForSelector('.empty');
}

async function main() {
  await inBrowser(async (page) => {
    for (const step of [signIn, importModels, refusedModel, openModel, tuneModel, lookAtPackage, deployPackage, tryDeployment, rollBack, comparePackages, compileExactly, visitAll]) {
      await step(page);
      if (folder) await page.screenshot({path: path.join(folder, step.name + '.png'), fullPage: true});
    }
  });
}

main().then(() => console.log('the console works'));
