'use strict';
// A plain Node server around ONNX Runtime that speaks KServe v2 with binary tensors, as far as the benchmark asks it:
//   node ort_server.js MODEL.onnx THREADS     prints its port, answers POST /v2/models/m/infer
// One input and one output of 32-bit floats. The body is handed to ONNX Runtime without a copy where its alignment
// allows it.

const http = require('http');

const { load, ort } = require('./ort.js');

const kLength = 'inference-header-content-length';

function floats(bytes) {
  if (bytes.byteOffset % 4 === 0) return new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
  const copy = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(copy);
  return new Float32Array(copy.buffer, 0, bytes.length / 4);
}

async function infer(session, body, json_size) {
  const request = JSON.parse(body.toString('utf8', 0, json_size));
  const input = request.inputs[0];
  const feeds = { [input.name]: new ort.Tensor('float32', floats(body.subarray(json_size)), input.shape) };
  const results = await session.run(feeds);
  const name = session.outputNames[0];
  const { data, dims } = results[name];
  const raw = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  const output = { name, datatype: 'FP32', shape: dims, parameters: { binary_data_size: raw.length } };
  const head = Buffer.from(JSON.stringify({ model_name: 'm', model_version: '1', outputs: [output] }));
  return [head, raw];
}

async function main() {
  const [model, threads] = process.argv.slice(2);
  const session = await load(model, threads);
  const server = http.createServer((request, response) => {
    const parts = [];
    request.on('data', (part) => parts.push(part));
    request.on('end', async () => {
      try {
        const body = parts.length === 1 ? parts[0] : Buffer.concat(parts);
        const [head, raw] = await infer(session, body, Number(request.headers[kLength]));
        response.writeHead(200, {
          'Content-Type': 'application/octet-stream',
          'Content-Length': head.length + raw.length,
          'Inference-Header-Content-Length': head.length,
        });
        response.write(head);
        response.end(raw);
      } catch (error) {
        response.writeHead(400, { 'Content-Length': Buffer.byteLength(error.message) });
        response.end(error.message);
      }
    });
  });
  server.keepAliveTimeout = 60000;
  server.listen(0, '127.0.0.1', () => console.log(JSON.stringify({ port: server.address().port })));
}

main().catch((error) => {
  console.error(`error: ${error.message}`);
  process.exit(3);
});
