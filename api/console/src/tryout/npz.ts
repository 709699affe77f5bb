// NPZ files as numpy writes and reads them: stored or deflated members, each an array with a short header. Never pickles.
import {S} from '../strings';

export interface NpyArray { name: string; dtype: string; shape: number[]; values: ArrayLike<number | bigint | boolean | string> }

const TYPES: Record<string, [string, number]> = {
  b1: ['bool', 1], i1: ['int8', 1], u1: ['uint8', 1], i2: ['int16', 2], u2: ['uint16', 2], i4: ['int32', 4], u4: ['uint32', 4],
  i8: ['int64', 8], u8: ['uint64', 8], f2: ['float16', 2], f4: ['float32', 4], f8: ['float64', 8],
};

function half(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1, exponent = (bits >> 10) & 31, fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent === 0 ? fraction * 2 ** -24 : (1024 + fraction) * 2 ** (exponent - 25));
}

function element(view: DataView, code: string, at: number, little: boolean): number | bigint | boolean {
  switch (code) {
    case 'b1': return view.getUint8(at) !== 0;
    case 'i1': return view.getInt8(at);
    case 'u1': return view.getUint8(at);
    case 'i2': return view.getInt16(at, little);
    case 'u2': return view.getUint16(at, little);
    case 'i4': return view.getInt32(at, little);
    case 'u4': return view.getUint32(at, little);
    case 'i8': return view.getBigInt64(at, little);
    case 'u8': return view.getBigUint64(at, little);
    case 'f2': return half(view.getUint16(at, little));
    case 'f4': return view.getFloat32(at, little);
    default: return view.getFloat64(at, little);
  }
}

export function readNpy(bytes: Uint8Array, name: string): NpyArray {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < 10 || String.fromCharCode(...bytes.subarray(1, 6)) !== 'NUMPY') throw new Error(S.npz.noArray(name));
  const wide = bytes[6]! > 1;
  const length = wide ? view.getUint32(8, true) : view.getUint16(8, true), start = wide ? 12 : 10;
  const header = new TextDecoder('latin1').decode(bytes.subarray(start, start + length));
  const descr = /'descr':\s*'([<>|=])([a-zA-Z])(\d+)'/.exec(header), dims = /'shape':\s*\(([^)]*)\)/.exec(header);
  if (!descr || !dims || /'fortran_order':\s*True/.test(header)) throw new Error(S.npz.otherKind(name));
  const shape = dims[1]!.split(',').map((word) => word.trim()).filter(Boolean).map(Number);
  const total = shape.reduce((product, dim) => product * dim, 1);
  const code = descr[2]! + descr[3]!, known = TYPES[code];
  if (!known) return {name, dtype: code, shape, values: []};
  if (start + length + total * known[1] > bytes.length) throw new Error(S.npz.short(name));
  const values = new Array<number | bigint | boolean>(total);
  for (let i = 0; i < total; ++i) values[i] = element(view, code, start + length + i * known[1], descr[1] !== '>');
  return {name, dtype: known[0], shape, values};
}

async function inflate(bytes: Uint8Array): Promise<Uint8Array> {
  const stream = new Blob([bytes as BlobPart]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

const LARGE = 0xffffffff;

/** Fields of a directory's entry that did not fit in 32 bits, or were not wanted there, stand in its extra field 1, in this order. */
function wide(view: DataView, at: number, length: number, fields: number[]): number[] {
  for (let here = at; here + 4 <= at + length; here += 4 + view.getUint16(here + 2, true)) {
    if (view.getUint16(here, true) !== 1) continue;
    let next = here + 4;
    return fields.map((field) => {
      if (field !== LARGE) return field;
      next += 8;
      return Number(view.getBigUint64(next - 8, true));
    });
  }
  return fields;
}

/** By the directory at the archive's end, as every reader of ZIP goes; that of ZIP64 where there is one. */
export async function readNpz(buffer: ArrayBuffer): Promise<NpyArray[]> {
  const bytes = new Uint8Array(buffer), view = new DataView(buffer);
  let end = bytes.length - 22;
  while (end >= 0 && view.getUint32(end, true) !== 0x06054b50) --end;
  if (end < 0) throw new Error(S.npz.noFile);
  const arrays: NpyArray[] = [];
  let at = view.getUint32(end + 16, true), left = view.getUint16(end + 10, true);
  if (end >= 20 && view.getUint32(end - 20, true) === 0x07064b50) {
    const large = Number(view.getBigUint64(end - 12, true));
    left = Number(view.getBigUint64(large + 32, true));
    at = Number(view.getBigUint64(large + 48, true));
  }
  for (; left > 0; --left) {
    const method = view.getUint16(at + 10, true);
    const [nameLength, extra, comment] = [view.getUint16(at + 28, true), view.getUint16(at + 30, true), view.getUint16(at + 32, true)] as const;
    const [, size, local] = wide(view, at + 46 + nameLength, extra, [24, 20, 42].map((field) => view.getUint32(at + field, true))) as [number, number, number];
    const name = new TextDecoder().decode(bytes.subarray(at + 46, at + 46 + nameLength)).replace(/\.npy$/, '');
    const start = local + 30 + view.getUint16(local + 26, true) + view.getUint16(local + 28, true);
    const data = bytes.subarray(start, start + size);
    arrays.push(readNpy(method === 8 ? await inflate(data) : data, name));
    at += 46 + nameLength + extra + comment;
  }
  return arrays;
}
