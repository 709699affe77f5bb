'use strict';
// Runs an ONNX model with ONNX Runtime on the CPU: tensors in and out as NPZ, every output written.
//   node ort_run.js MODEL.onnx IN.npz OUT.npz [--threads N] [--repeat N] [--warmup N] [--graph-opt all|disabled]
//                   [--json] [--stats] [--by-position]
//   node ort_run.js --lines
// Input keys are the model's input names, or input_0, input_1 … by position. OUT `-` writes no file. --json prints the
// times; --stats prints instead, for each output, its count, its largest |value|, its spread, and how many are finite.
// --by-position names the outputs "0", "1" ...; --lines reads lines of JSON, a list of such arguments each, and answers
// each with a line: "ok" and what is printed, or "error" and why.

const readline = require('readline');
const ort = require('onnxruntime-node');
const { read_npz, write_npz } = require('./npz.js');

function parse_args(argv) {
  const options = { threads: 0, repeat: 1, warmup: 0, graph_opt: 'all', json: false, stats: false, by_position: false, files: [] };
  for (let i = 0; i < argv.length; i++) {
    const arg = argv[i];
    if (arg === '--json') options.json = true;
    else if (arg === '--stats') options.stats = true;
    else if (arg === '--by-position') options.by_position = true;
    else if (arg === '--graph-opt') options.graph_opt = argv[++i];
    else if (['--threads', '--repeat', '--warmup'].includes(arg)) {
      const value = Number(argv[++i]);
      if (!Number.isInteger(value) || value < 0) throw new Error(`${arg}: not a count`);
      options[arg.slice(2)] = value;
    } else if (arg.startsWith('--')) throw new Error(`unknown option ${arg}`);
    else options.files.push(arg);
  }
  if (options.files.length !== 3) throw new Error('usage: ort_run.js MODEL.onnx IN.npz OUT.npz [--threads N] [--repeat N]');
  return options;
}

function statistics(times_ms) {
  const sorted = [...times_ms].sort((a, b) => a - b);
  const mean = sorted.reduce((a, b) => a + b, 0) / sorted.length;
  const middle = sorted.length >> 1;
  const median = sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  const variance = sorted.reduce((a, b) => a + (b - mean) ** 2, 0) / sorted.length;
  return { mean, median, max: sorted[sorted.length - 1], min: sorted[0], std: Math.sqrt(variance) };
}

function summarize(data) {
  let finite = 0;
  let largest = 0;
  let sum = 0;
  let squares = 0;
  for (let i = 0; i < data.length; i++) {
    const value = Number(data[i]);
    if (!Number.isFinite(value)) continue;
    finite++;
    largest = Math.max(largest, Math.abs(value));
    sum += value;
    squares += value * value;
  }
  const mean = finite ? sum / finite : 0;
  const variance = finite ? Math.max(0, squares / finite - mean * mean) : 0;
  return { count: data.length, finite, largest, mean, std: Math.sqrt(variance) };
}

/** What is printed. */
async function run(argv) {
  const options = parse_args(argv);
  const [model_path, in_path, out_path] = options.files;
  const session_options = { executionProviders: ['cpu'], graphOptimizationLevel: options.graph_opt, logSeverityLevel: 4 };
  if (options.threads > 0) {
    session_options.intraOpNumThreads = options.threads;
    session_options.interOpNumThreads = 1;
  }
  const session = await ort.InferenceSession.create(model_path, session_options);
  try {
    return await run_session(session, options, in_path, out_path);
  } finally {
    await session.release();
  }
}

async function run_session(session, options, in_path, out_path) {
  const given = read_npz(in_path);
  const feeds = {};
  session.inputNames.forEach((name, position) => {
    const tensor = given.get(name) || given.get(`input_${position}`);
    if (!tensor) throw new Error(`input ${name} is not in ${in_path}`);
    feeds[name] = new ort.Tensor(tensor.type, tensor.data, tensor.dims);
  });

  for (let i = 0; i < options.warmup; i++) await session.run(feeds);
  const times_ms = [];
  let results;
  for (let i = 0; i < Math.max(1, options.repeat); i++) {
    const start = process.hrtime.bigint();
    results = await session.run(feeds);
    times_ms.push(Number(process.hrtime.bigint() - start) / 1e6);
  }

  const outputs = new Map();
  session.outputNames.forEach((name, position) => {
    const { type, dims, data } = results[name];
    outputs.set(options.by_position ? String(position) : name, { type, dims: [...dims], data });
  });
  if (out_path !== '-') write_npz(out_path, outputs);
  if (options.stats) {
    const entries = [...outputs].map(([name, { type, data }]) => [name, { type, ...summarize(data) }]);
    return JSON.stringify(Object.fromEntries(entries));
  }
  return options.json ? JSON.stringify({ times_ms, ...statistics(times_ms) }) : '';
}

async function answer_lines() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    let answer;
    try {
      answer = `ok ${await run(JSON.parse(line))}`;
    } catch (error) {
      answer = `error ${error.message.replace(/\s+/g, ' ')}`;
    }
    process.stdout.write(`${answer}\n`);
  }
}

async function main() {
  const argv = process.argv.slice(2);
  if (argv[0] === '--lines') return answer_lines();
  const printed = await run(argv);
  if (printed) console.log(printed);
}

main().catch((error) => {
  console.error(`error: ${error.message}`);
  process.exitCode = 3;
});
