'use strict';
// NPZ (a zip of .npy members) in plain JavaScript: what numpy.savez and savez_compressed write is read, and stored
// members are written. Dtypes: bool, int8..int64, uint8..uint64, float16 (as raw bits), float32, float64, and strings ('<U').

const fs = require('fs');
const zlib = require('zlib');

/** npy descr (without byte order) -> [ONNX Runtime type name, typed array, bytes of one element]. */
const kDtypes = {
  b1: ['bool', Uint8Array, 1],
  i1: ['int8', Int8Array, 1],
  u1: ['uint8', Uint8Array, 1],
  i2: ['int16', Int16Array, 2],
  u2: ['uint16', Uint16Array, 2],
  i4: ['int32', Int32Array, 4],
  u4: ['uint32', Uint32Array, 4],
  i8: ['int64', BigInt64Array, 8],
  u8: ['uint64', BigUint64Array, 8],
  f2: ['float16', Uint16Array, 2],
  f4: ['float32', Float32Array, 4],
  f8: ['float64', Float64Array, 8],
};

/** numpy's strings: as many code points of 32 bits an element as the longest has, zeros behind. */
function parse_strings(bytes, count, width) {
  const points = new Uint32Array(count * width);
  Buffer.from(points.buffer).set(bytes.subarray(0, count * width * 4));
  return Array.from({ length: count }, (_, i) => {
    const own = Array.from(points.subarray(i * width, (i + 1) * width));
    while (own.length && own[own.length - 1] === 0) own.pop();
    return String.fromCodePoint(...own);
  });
}

function format_strings(strings) {
  const points = strings.map((text) => Array.from(text, (letter) => letter.codePointAt(0)));
  const width = Math.max(1, ...points.map((own) => own.length));
  const data = new Uint32Array(strings.length * width);
  points.forEach((own, i) => data.set(own, i * width));
  return { width, data };
}

const kCrcTable = new Uint32Array(256).map((_, n) => {
  let c = n;
  for (let k = 0; k < 8; k++) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1;
  return c >>> 0;
});

function crc32(buffer) {
  let c = 0xffffffff;
  for (let i = 0; i < buffer.length; i++) c = kCrcTable[(c ^ buffer[i]) & 0xff] ^ (c >>> 8);
  return (c ^ 0xffffffff) >>> 0;
}

/** Parses one .npy file: {type, dims, data}, data being a typed array in C order. */
function parse_npy(bytes, name) {
  if (bytes.length < 10 || bytes.toString('latin1', 0, 6) !== '\x93NUMPY') throw new Error(`${name}: not a .npy file`);
  const wide = bytes[6] >= 2;
  const header_length = wide ? bytes.readUInt32LE(8) : bytes.readUInt16LE(8);
  const header_start = wide ? 12 : 10;
  const header = bytes.toString('latin1', header_start, header_start + header_length);
  const descr = /'descr':\s*'([<>|=])([a-z]\d|U\d+)'/.exec(header);
  const shape = /'shape':\s*\(([^)]*)\)/.exec(header);
  const width = descr && descr[2][0] === 'U' ? Number(descr[2].slice(1)) : 0;
  if (!descr || !shape || (!kDtypes[descr[2]] && descr[2][0] !== 'U')) throw new Error(`${name}: header ${header.trim()} is not supported`);
  if (/'fortran_order':\s*True/.test(header)) throw new Error(`${name}: Fortran order is not supported`);
  const dims = shape[1].split(',').map((s) => s.trim()).filter((s) => s !== '').map(Number);
  const count = dims.reduce((a, b) => a * b, 1);
  const start = header_start + header_length;
  if (descr[2][0] === 'U') return { type: 'string', dims, data: parse_strings(bytes.subarray(start), count, width) };
  const [type, TypedArray, size] = kDtypes[descr[2]];
  if (start + count * size > bytes.length) throw new Error(`${name}: ${bytes.length - start} bytes of data, shape needs ${count * size}`);
  // Copied: a typed array needs its data aligned, and a zip member lies anywhere.
  const payload = Buffer.from(bytes.subarray(start, start + count * size));
  if (descr[1] === '>' && size > 1) {
    if (size === 2) payload.swap16();
    else if (size === 4) payload.swap32();
    else payload.swap64();
  }
  const data = new TypedArray(count);
  Buffer.from(data.buffer).set(payload);
  return { type, dims, data };
}

/** Reads an NPZ file: a Map from tensor name to {type, dims, data}. */
function read_npz(path) {
  const zip = fs.readFileSync(path);
  let end = zip.length - 22;
  while (end >= 0 && zip.readUInt32LE(end) !== 0x06054b50) end--;
  if (end < 0) throw new Error(`${path}: not a zip file`);
  const entries = zip.readUInt16LE(end + 10);
  let at = zip.readUInt32LE(end + 16);
  const tensors = new Map();
  for (let i = 0; i < entries; i++) {
    if (zip.readUInt32LE(at) !== 0x02014b50) throw new Error(`${path}: broken central directory`);
    const method = zip.readUInt16LE(at + 10);
    let packed = zip.readUInt32LE(at + 20);
    const name_length = zip.readUInt16LE(at + 28);
    const extra_length = zip.readUInt16LE(at + 30);
    const comment_length = zip.readUInt16LE(at + 32);
    const local = zip.readUInt32LE(at + 42);
    const name = zip.toString('utf8', at + 46, at + 46 + name_length);
    const data_start = local + 30 + zip.readUInt16LE(local + 26) + zip.readUInt16LE(local + 28);
    if (packed === 0xffffffff) throw new Error(`${path}: ${name}: zip64 sizes are not supported`);
    const raw = zip.subarray(data_start, data_start + packed);
    if (method !== 0 && method !== 8) throw new Error(`${path}: ${name}: zip method ${method} is not supported`);
    const bytes = method === 0 ? raw : zlib.inflateRawSync(raw);
    tensors.set(name.replace(/\.npy$/, ''), parse_npy(bytes, name));
    at += 46 + name_length + extra_length + comment_length;
  }
  return tensors;
}

function format_npy(tensor, name) {
  const strings = tensor.type === 'string' ? format_strings(tensor.data) : null;
  const descr = strings ? `U${strings.width}` : Object.keys(kDtypes).find((key) => kDtypes[key][0] === tensor.type);
  if (!descr) throw new Error(`${name}: type ${tensor.type} cannot be written to npz`);
  const order = !strings && kDtypes[descr][2] === 1 ? '|' : '<';
  const shape = tensor.dims.length === 1 ? `(${tensor.dims[0]},)` : `(${tensor.dims.join(', ')})`;
  let header = `{'descr': '${order}${descr}', 'fortran_order': False, 'shape': ${shape}, }`;
  header += ' '.repeat((64 - ((10 + header.length + 1) % 64)) % 64) + '\n';
  const head = Buffer.alloc(10);
  head.write('\x93NUMPY\x01\x00', 'latin1');
  head.writeUInt16LE(header.length, 8);
  const { data } = strings || tensor;
  return Buffer.concat([head, Buffer.from(header, 'latin1'), Buffer.from(data.buffer, data.byteOffset, data.byteLength)]);
}

/** Writes `tensors` (Map from name to {type, dims, data}) as an NPZ of stored members, in the map's order. */
function write_npz(path, tensors) {
  const parts = [];
  const central = [];
  let offset = 0;
  for (const [name, tensor] of tensors) {
    const file_name = Buffer.from(`${name}.npy`, 'utf8');
    const body = format_npy(tensor, name);
    const common = Buffer.alloc(26);  // the fields that the local and the central header share
    common.writeUInt16LE(20, 0);      // version needed
    common.writeUInt16LE(0x0800, 2);  // names are UTF-8
    common.writeUInt16LE(0x21, 8);    // 1980-01-01: same inputs, same bytes
    common.writeUInt32LE(crc32(body), 10);
    common.writeUInt32LE(body.length, 14);
    common.writeUInt32LE(body.length, 18);
    common.writeUInt16LE(file_name.length, 22);
    parts.push(Buffer.from('PK\x03\x04', 'latin1'), common, file_name, body);
    const tail = Buffer.alloc(14);
    tail.writeUInt32LE(offset, 10);
    central.push(Buffer.from('PK\x01\x02\x14\x00', 'latin1'), common, tail, file_name);
    offset += 30 + file_name.length + body.length;
  }
  const central_bytes = Buffer.concat(central);
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(tensors.size, 8);
  end.writeUInt16LE(tensors.size, 10);
  end.writeUInt32LE(central_bytes.length, 12);
  end.writeUInt32LE(offset, 16);
  fs.writeFileSync(path, Buffer.concat([...parts, central_bytes, end]));
}

module.exports = { read_npz, write_npz };
