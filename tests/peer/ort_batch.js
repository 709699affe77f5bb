'use strict';
// Runs many models with ONNX Runtime on the CPU, one after the other: reads lines "MODEL.onnx IN.npz OUT.npz [all|disabled]",
// writes the outputs in the model's order as members "0", "1" ..., and answers each with a line "ok" or "error TEXT".

const readline = require('readline');
const ort = require('onnxruntime-node');
const { read_npz, write_npz } = require('./npz.js');

async function run_case([model_path, in_path, out_path, graph_opt]) {
  const session = await ort.InferenceSession.create(model_path, {
    executionProviders: ['cpu'], graphOptimizationLevel: graph_opt || 'all', logSeverityLevel: 4,
    intraOpNumThreads: 1, interOpNumThreads: 1 });
  try {
    const given = read_npz(in_path);
    const feeds = {};
    for (const name of session.inputNames) {
      const tensor = given.get(name);
      if (!tensor) throw new Error(`input ${name} is not in ${in_path}`);
      feeds[name] = new ort.Tensor(tensor.type, tensor.data, tensor.dims);
    }
    const results = await session.run(feeds);
    const outputs = new Map();
    session.outputNames.forEach((name, position) => {
      const { type, dims, data } = results[name];
      outputs.set(String(position), { type, dims: [...dims], data });
    });
    write_npz(out_path, outputs);
  } finally {
    await session.release();
  }
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    let answer = 'ok';
    try {
      await run_case(line.split(' '));
    } catch (error) {
      answer = `error ${error.message.replace(/\s+/g, ' ')}`;
    }
    process.stdout.write(`${answer}\n`);
  }
}

main();
