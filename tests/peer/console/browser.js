// Chromium for the tests of the console: what goes wrong in a page is collected, and each view can be held against axe's
// rules of accessibility.
'use strict';

const assert = require('node:assert');
const fs = require('node:fs');
const path = require('node:path');
const {chromium} = require('playwright-core');

// Met early it costs nothing; a busy machine needs much of it.
const DEADLINE_MS = Number(process.env.CONSOLE_TEST_DEADLINE_MS ?? 300000);
const AXE = path.join(__dirname, '../../../api/console/node_modules/axe-core/axe.min.js');

/** Runs `test(page, wrong)` in a page of its own; whatever the page complained about fails it. */
async function inBrowser(test, options = {}) {
  const browser = await chromium.launch({executablePath: '/usr/bin/chromium-headless-shell',
    args: ['--no-sandbox', '--use-fake-device-for-media-stream', '--use-fake-ui-for-media-stream']});
  try {
    // A colour half way to another is neither's contrast.
    const context = await browser.newContext({viewport: {width: 1280, height: 900}, reducedMotion: 'reduce', permissions: ['clipboard-read', 'clipboard-write', 'camera'], ...options});
    const page = await context.newPage();
    page.setDefaultTimeout(DEADLINE_MS);
    const wrong = [];
    page.on('pageerror', (error) => wrong.push(error.message));
    // A refused request is a line of its own kind; anything else is the page's fault, a breach of its policy too.
    page.on('console', (line) => {
      if (line.type() === 'error' && !line.text().startsWith('Failed to load resource')) wrong.push(line.text());
    });
    page.on('request', (request) => {
      if (!/^(http:\/\/127\.0\.0\.1:|blob:|data:)/.test(request.url())) wrong.push('asked for ' + request.url());
    });
    page.on('dialog', (dialog) => dialog.accept());
    await test(page, wrong);
    assert.deepEqual(wrong, []);
  } finally {
    await browser.close();
  }
}

/** The violations of the page as it is now; axe is evaluated beside the page, whose policy stays as it is. */
async function violations(page) {
  await page.evaluate(fs.readFileSync(AXE, 'utf8') + '\n;0');
  return page.evaluate(async () => {
    // A window: the page's own scripts see the same axe.
    const {violations: found} = await window.axe.run(document, {resultTypes: ['violations']});
    return found.map(({id, nodes}) => id + ': ' + nodes.map((node) => node.target.join(' ')).slice(0, 5).join(' | '));
  });
}

/** Opens a view by its address and waits until nothing of it is still loading. */
async function visit(page, hash, selector = '#page h1') {
  await page.evaluate((address) => { location.hash = address; }, hash);
  await page.waitForSelector(selector);
  await page.waitForFunction(() => !document.querySelector('#page [aria-busy=true]'));
}

module.exports = {inBrowser, violations, visit};
