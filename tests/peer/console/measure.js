// What the graph viewer of the console at URL takes for COUNT nodes: the first view, all nodes placed, frames while panning.
//   node measure.js URL [COUNT]
'use strict';

const {chromium} = require('playwright-core');
const {residual, transformer} = require('./made_graphs.js');

const [url, count = '5000'] = process.argv.slice(2);
const MODEL = 'sha256:' + 'a'.repeat(64);
const ANSWER = {id: MODEL, name: 'made', names: [], format: 'onnx', size: 1, inputs: [], outputs: [], ops: {}, parameters: 1, created_at: '2026-01-02T03:04:05.678Z'};
const FRAMES = 90;

async function measure(page, graph) {
  const body = JSON.stringify(graph);
  await page.unrouteAll();
  await page.route(/\/v1\/models\//, (route) => (route.request().url().includes('/graph')
    ? route.fulfill({contentType: 'application/json', body}) : route.fulfill({json: ANSWER})));
  await page.goto(url);
  // From the answer's arrival, which is not the viewer's: the last resource that was asked for.
  await page.goto(url + '#models/' + MODEL + '?tab=graph');
  await page.waitForFunction(() => document.querySelector('canvas')?.dataset.drawn);
  const first = await page.evaluate(() => performance.now() - performance.getEntriesByType('resource').filter((entry) => entry.name.includes('/graph')).at(-1).responseEnd);
  const before = Date.now();
  await page.click('button:text-is("Open all blocks")');
  await page.waitForFunction((least) => Number(document.querySelector('canvas').dataset.boxes) >= least, graph.nodes.length);
  const all = Date.now() - before;
  await page.click('button:text-is("Whole graph")');
  const rates = {};
  for (const [name, zooms] of [['whole', 0], ['near', 12]]) {
    for (let i = 0; i < zooms; ++i) await page.click('[aria-label="Zoom in"]');
    rates[name] = await page.evaluate(async (frames) => {
      const canvas = document.querySelector('canvas');
      const box = canvas.getBoundingClientRect();
      const send = (kind, x, y) => canvas.dispatchEvent(new PointerEvent(kind, {pointerId: 1, clientX: box.x + x, clientY: box.y + y, bubbles: true, isPrimary: true}));
      canvas.setPointerCapture = () => {};
      send('pointerdown', 200, 300);
      const spent = [], plain = window.requestAnimationFrame.bind(window);
      window.requestAnimationFrame = (work) => plain((now) => {
        const start = performance.now();
        work(now);
        spent.push(performance.now() - start);
      });
      const drawn = Number(canvas.dataset.drawn), begin = performance.now();
      for (let i = 0; i < frames; ++i) {
        send('pointermove', 200 + 60 * Math.sin(i / 5), 300 + 120 * Math.cos(i / 7));
        await new Promise(plain);
      }
      send('pointercancel', 200, 300);
      window.requestAnimationFrame = plain;
      spent.sort((a, b) => a - b);
      return {fps: Math.round(1000 * (Number(canvas.dataset.drawn) - drawn) / (performance.now() - begin)), draw_ms: Number(spent[spent.length >> 1].toFixed(1)), least_ms: Number(spent[0].toFixed(1))};
    }, FRAMES);
  }
  return {nodes: graph.nodes.length, first_view_ms: Math.round(first), all_ms: all, pan_whole: rates.whole, pan_near: rates.near};
}

async function main() {
  const browser = await chromium.launch({executablePath: '/usr/bin/chromium-headless-shell', args: ['--no-sandbox']});
  try {
    const page = await browser.newPage({viewport: {width: 1280, height: 900}});
    await page.goto(url);
    await page.waitForSelector('#page h1');
    const paint = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime);
    console.log(JSON.stringify({first_paint_ms: Math.round(paint)}));
    console.log(JSON.stringify({graph: 'residual', ...await measure(page, residual(Number(count)))}));
    console.log(JSON.stringify({graph: 'transformer', ...await measure(page, transformer(Math.ceil(Number(count) / 15)))}));
  } finally {
    await browser.close();
  }
}

main();
