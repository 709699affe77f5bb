// The built site in Chromium: every kind of page asks for its own files alone, and the search finds a word, over HTTP and from a folder.
'use strict';

const assert = require('node:assert');
const {chromium} = require('playwright-core');

const DEADLINE_MS = 300000;
const PAGES = ['index.html', 'tutorials/first-model.html', 'reference/http.html', 'explanation/compiler.html'];

async function look(browser, base) {
  const context = await browser.newContext({viewport: {width: 1280, height: 900}, reducedMotion: 'reduce'});
  const page = await context.newPage();
  page.setDefaultTimeout(DEADLINE_MS);
  const wrong = [];
  page.on('request', (request) => {
    if (!request.url().startsWith(base) && !/^(data|blob|about):/.test(request.url())) wrong.push('asked for ' + request.url());
  });
  // What a page still asks for when it is left is aborted: on a busy machine its search begins after the network was idle. What is
  // not there, or may not be asked for, fails with other words.
  page.on('requestfailed', (request) => {
    if (request.failure().errorText !== 'net::ERR_ABORTED') wrong.push('no answer: ' + request.url() + ': ' + request.failure().errorText);
  });
  page.on('response', (answer) => {
    if (answer.status() >= 400) wrong.push(answer.status() + ' ' + answer.url());
  });
  page.on('pageerror', (error) => wrong.push(error.message));
  for (const name of PAGES) {
    await page.goto(base + name, {waitUntil: 'networkidle'});
    const broken = await page.evaluate(() => [...document.images].filter((one) => one.complete && one.naturalWidth === 0).map((one) => one.src));
    wrong.push(...broken);
  }
  await page.goto(base + 'index.html', {waitUntil: 'load'});
  await page.click('input[name=query]');
  await page.keyboard.type('memory_in_flight');
  await page.waitForSelector('.md-search-result__link');
  const found = await page.$$eval('.md-search-result__link', (links) => links.map((link) => link.getAttribute('href')));
  assert.ok(found.some((address) => address.includes('settings.html')), 'the search found ' + found);
  assert.deepEqual(wrong, []);
  await context.close();
}

async function main() {
  const browser = await chromium.launch({executablePath: '/usr/bin/chromium-headless-shell', args: ['--no-sandbox']});
  try {
    for (const base of process.argv.slice(2)) await look(browser, base);
  } finally {
    await browser.close();
  }
  console.log('the site works');
}

main();
