// Uses the console at URL as a person would, in Chromium: signs in, takes the sample model, drops a broken file, tunes,
// deploys the package, classifies a picture, and looks at every other view. Exits with 0 when all of it was seen.
//   node flow.js URL KEY MODEL.onnx PICTURE.png LABEL [FOLDER for screenshots]
'use strict';

const assert = require('node:assert');
const fs = require('node:fs');
const path = require('node:path');
const {inBrowser, violations, visit} = require('./browser.js');

const [url, key, model, picture, label, folder] = process.argv.slice(2);
// Each stands for a digit; one looks like markup.
const LABELS = Array.from({length: 10}, (_, digit) => '<i>' + digit + '</i>');

async function signIn(page) {
  await page.goto(url);
  await page.fill('#key [name=key]', key);
  await page.click('#key button');
  await page.waitForSelector('.empty');
  assert.deepEqual(await violations(page), [], 'the empty console');
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

async function tryDeployment(page) {
  await page.waitForSelector('#classify');
  await dropFile(page, 'digit.png', fs.readFileSync(picture), 'image/png');
  await page.waitForSelector('#classify meter');
  assert.equal(await page.textContent('#classify td'), LABELS[Number(label)]);
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
  await page.fill('#times', '20');
  await page.click('button:text-is("Repeat")');
  await page.waitForSelector('#histogram:has-text("20 requests")');
  await page.click('#snippets button:text-is("Python")');
  assert.match(await page.textContent('#snippets pre'), /v2\/models\/digits\/infer[^]*TENSORMILL_KEY/);
  assert.deepEqual(await violations(page), [], 'trying');
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

async function comparePackages(page) {
  await visit(page, '#packages', 'td');
  const [id] = await page.$$eval('td a[href^="#packages/"]', (links) => links.map((link) => decodeURIComponent(link.hash.slice(10))));
  await visit(page, '#compare');
  await page.selectOption('#add', id);
  await page.click('button:text-is("Measure all")');
  await page.waitForFunction(() => /\d (ms|µs)/.test(document.querySelector('#page table').textContent));
  await page.click('button:text-is("Compare layers")');
  await page.waitForSelector('h2:text-is("Time by layer")');
  assert.ok(page.url().includes('compare?p=sha256'), 'the choice is in the address');
  const [csv] = await Promise.all([page.waitForEvent('download'), page.click('button:text-is("CSV")')]);
  assert.match(fs.readFileSync(await csv.path(), 'utf8'), /^package,target,opt_level,median_ms,p95_ms[^]*sha256:/);
  assert.deepEqual(await violations(page), [], 'comparing');
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
    for (const step of [signIn, importModels, tuneModel, lookAtPackage, deployPackage, tryDeployment, rollBack, comparePackages, compileExactly, visitAll]) {
      await step(page);
      if (folder) await page.screenshot({path: path.join(folder, step.name + '.png'), fullPage: true});
    }
  });
}

main().then(() => console.log('the console works'));
