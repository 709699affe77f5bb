'use strict';
// ONNX Runtime behind the line protocol of bench_runner: node ort_session.js MODEL.onnx INPUTS.npz THREADS
//   run RUNS MS MAX_MS, peak, write FILE.npz     (see bench/runner/main.cc)
// All graph optimizations, one inter-op thread. A time covers session.run from call to resolved promise.

const fs = require('fs');
const path = require('path');
const readline = require('readline');

const { load, ort, peer } = require('./ort.js');
const { read_npz, write_npz } = require(path.join(peer, 'npz.js'));

async function run(session, feeds, runs, ms, max_ms) {
  const times = [];
  const start = process.hrtime.bigint();
  let before = start;
  let elapsed_ms = 0;
  let results;
  do {
    results = await session.run(feeds);
    const after = process.hrtime.bigint();
    times.push(Number(after - before) / 1e3);
    before = after;
    elapsed_ms = Number(after - start) / 1e6;
  } while (elapsed_ms < max_ms && (elapsed_ms < ms || times.length < runs));
  return { times, results };
}

function peak_kib() {
  return Number(/^VmHWM:\s*(\d+) kB$/m.exec(fs.readFileSync('/proc/self/status', 'utf8'))[1]);
}

async function main() {
  const [model, inputs, threads] = process.argv.slice(2);
  const session = await load(model, threads);
  const given = read_npz(inputs);
  const feeds = {};
  for (const name of session.inputNames) {
    const { type, data, dims } = given.get(name);
    feeds[name] = new ort.Tensor(type, data, dims);
  }
  let last;
  console.log('{}');
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [command, ...words] = line.split(' ');
    if (command === 'run') {
      const { times, results } = await run(session, feeds, ...words.map(Number));
      last = results;
      console.log(JSON.stringify({ us: times }));
    } else if (command === 'peak') {
      console.log(JSON.stringify({ peak_kib: peak_kib() }));
    } else if (command === 'write') {
      const outputs = session.outputNames.map((n) => [n, { type: last[n].type, dims: [...last[n].dims], data: last[n].data }]);
      write_npz(words[0], new Map(outputs));
      console.log('{}');
    } else {
      throw new Error(`not a request: ${line}`);
    }
  }
}

main().catch((error) => {
  console.error(`error: ${error.message}`);
  process.exit(3);
});
