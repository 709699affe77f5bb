'use strict';
// ONNX Runtime as every comparison runs it: all graph optimizations, operators one after the other.

const path = require('path');

const peer = path.join(__dirname, '../../tests/peer');
const ort = require(path.join(peer, 'node_modules/onnxruntime-node'));

function load(model, threads) {
  return ort.InferenceSession.create(model, {
    executionProviders: ['cpu'],
    graphOptimizationLevel: 'all',
    executionMode: 'sequential',
    intraOpNumThreads: Number(threads),
    interOpNumThreads: 1,
    logSeverityLevel: 3,
  });
}

module.exports = { load, ort, peer };
