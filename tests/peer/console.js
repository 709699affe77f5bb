// Uses the console at URL as a person would, in Chromium: signs in, uploads a model, tunes it, deploys the package and
// classifies a picture. Exits with 0 when all of it was seen.
//   node console.js URL KEY MODEL.onnx PICTURE.png LABEL [FOLDER for screenshots]
'use strict';

const assert = require('node:assert');
const path = require('node:path');
const {chromium} = require('playwright-core');

const [url, key, model, picture, label, folder] = process.argv.slice(2);
const DEADLINE_MS = 600000;
// Each stands for a digit; one looks like markup.
const LABELS = Array.from({length: 10}, (_, digit) => '<i>' + digit + '</i>');

async function signIn(page) {
  await page.goto(url);
  await page.fill('#key [name=key]', key);
  await page.click('#key button');
  await page.waitForSelector('#upload');
}

async function uploadModel(page) {
  await page.setInputFiles('#upload [name=file]', {name: 'broken.onnx', mimeType: 'application/octet-stream', buffer: Buffer.from('no model')});
  assert.equal(await page.inputValue('#upload [name=name]'), 'broken');
  await page.click('#upload button');
  await page.waitForSelector('#error:not([hidden])');
  await page.setInputFiles('#upload [name=file]', model);
  await page.fill('#upload [name=name]', 'digits');
  await page.click('#upload button');
  await page.waitForSelector('#job');
  assert(await page.locator('#error').isHidden(), 'the error of the broken file is still there');
  assert.match(await page.textContent('dd'), /image float32\[N,1,28,28\]/);
}

async function tuneModel(page) {
  await page.selectOption('#job [name=kind]', 'tune');
  await page.fill('#job [name=trials]', '12');
  await page.fill('#job [name=dim-N]', '1');
  await page.click('#job button');
  await page.waitForSelector('.chart');
  await page.waitForSelector('.succeeded');
  assert.match(await page.textContent('#page table'), /conv_first_relu/);
  await page.click('summary');
  await page.waitForFunction(() => document.querySelector('pre').textContent.includes('child-tune'));
  await page.click('text=Open the package');
}

async function deployPackage(page) {
  await page.waitForSelector('#deploy');
  await page.click('button:text-is("Show")');
  await page.waitForFunction(() => document.querySelector('pre').textContent.includes('graph'));
  await page.fill('#deploy [name=name]', 'digits');
  await page.check('#deploy [name=pictures]');
  assert.equal(await page.inputValue('#deploy [name=crop]'), '28');
  await page.fill('#deploy [name=labels]', LABELS.join('\n'));
  await page.click('#deploy > button');
}

async function tryDeployment(page) {
  await page.setInputFiles('#classify [name=picture]', picture);
  await page.click('#classify button');
  await page.waitForSelector('#classify meter');
  assert.equal(await page.textContent('#classify td'), LABELS[Number(label)]);
  await page.click('#random button');
  await page.waitForSelector('#random p:has-text("version 1 answered")');
}

async function visitLists(page) {
  const rows = {models: /digits/, jobs: /succeeded/, packages: /float32\[1,1,28,28\]/, deployments: /ready/, store: /blobs/};
  for (const [name, text] of Object.entries(rows)) {
    await page.click('nav a[href="#' + name + '"]');
    await page.waitForFunction(([source]) => new RegExp(source).test(document.getElementById('page').textContent), [text.source]);
    if (folder) await page.screenshot({path: path.join(folder, name + '.png')});
  }
  await page.click('button:text-is("What is not needed?")');
  await page.waitForSelector('text=would remove');
  await page.click('nav a[href="#deployments"]');
  await page.click('button:text-is("Delete")');
  await page.waitForSelector('.nothing');
}

async function main() {
  const browser = await chromium.launch({executablePath: '/usr/bin/chromium-headless-shell', args: ['--no-sandbox']});
  try {
    const page = await browser.newPage({viewport: {width: 1200, height: 900}});
    page.setDefaultTimeout(DEADLINE_MS);
    const wrong = [];
    page.on('pageerror', (error) => wrong.push(error.message));
    // A refused request is a line of its own kind; anything else is the page's fault, a breach of its policy too.
    page.on('console', (line) => {
      if (line.type() === 'error' && !line.text().startsWith('Failed to load resource')) wrong.push(line.text());
    });
    page.on('dialog', (dialog) => dialog.accept());
    for (const step of [signIn, uploadModel, tuneModel, deployPackage, tryDeployment, visitLists]) {
      await step(page);
      if (folder) await page.screenshot({path: path.join(folder, step.name + '.png'), fullPage: true});
    }
    assert.deepEqual(wrong, []);
  } finally {
    await browser.close();
  }
}

main().then(() => console.log('the console works'));
