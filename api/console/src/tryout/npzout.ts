// An NPZ file of one array: a ZIP archive with a stored member, as numpy.savez writes it.

let table: Uint32Array | null = null;

function crc32(bytes: Uint8Array): number {
  table ??= Uint32Array.from({length: 256}, (_, n) => {
    let value = n;
    for (let bit = 0; bit < 8; ++bit) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
    return value;
  });
  let sum = 0xffffffff;
  for (const byte of bytes) sum = table[(sum ^ byte) & 255]! ^ (sum >>> 8);
  return (sum ^ 0xffffffff) >>> 0;
}

function npy(values: Float32Array | Uint8Array, shape: readonly number[]): Uint8Array {
  const descr = values instanceof Uint8Array ? '|u1' : '<f4';
  const words = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (" + shape.map((extent) => extent + ',').join(' ') + '), }';
  // Numbers begin at a multiple of 64.
  const header = words.padEnd(Math.ceil((words.length + 11) / 64) * 64 - 11) + '\n';
  const bytes = new Uint8Array(10 + header.length + values.byteLength);
  bytes.set([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, header.length & 255, header.length >> 8]);
  bytes.set(new TextEncoder().encode(header), 10);
  bytes.set(new Uint8Array(values.buffer, values.byteOffset, values.byteLength), 10 + header.length);
  return bytes;
}

export function writeNpz(name: string, values: Float32Array | Uint8Array, shape: readonly number[]): Blob {
  const data = npy(values, shape), title = new TextEncoder().encode(name + '.npy');
  // Made by version 2.0, names in UTF-8, stored; no time.
  const fields = [20, 0x0800, 0, 0, 0x21];
  const sizes = [crc32(data), data.length, data.length];
  const record = (signature: number, before: number[], after: number[], last: number | null) => {
    const view = new DataView(new ArrayBuffer(4 + 2 * (before.length + fields.length + 1 + after.length) + 12 + (last === null ? 0 : 8)));
    let at = 4;
    const short = (value: number) => { view.setUint16(at, value, true); at += 2; };
    const long = (value: number) => { view.setUint32(at, value, true); at += 4; };
    view.setUint32(0, signature, true);
    before.forEach(short);
    fields.forEach(short);
    sizes.forEach(long);
    short(title.length);
    after.forEach(short);
    if (last !== null) { long(0); long(last); }
    return new Uint8Array(view.buffer);
  };
  const local = record(0x04034b50, [], [0], null), entry = record(0x02014b50, [20], [0, 0, 0, 0], 0);
  const start = local.length + title.length + data.length;
  const end = new DataView(new ArrayBuffer(22));
  end.setUint32(0, 0x06054b50, true);
  end.setUint16(8, 1, true);
  end.setUint16(10, 1, true);
  end.setUint32(12, entry.length + title.length, true);
  end.setUint32(16, start, true);
  return new Blob([local, title, data, entry, title, end.buffer] as BlobPart[], {type: 'application/x-npz'});
}
