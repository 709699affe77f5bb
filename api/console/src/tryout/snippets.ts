// What was just done, as others would do it: curl, Python and JavaScript, with this server's address.

/** `text`: the body itself, where it is a text that was written here; else it is the file's bytes. */
export interface Done { method: string; path: string; type: string; accept: string; file: string; text?: string }

const SHORT = 4000;

/** The body as a part of the snippet; null: it comes from the file. */
const inline = (done: Done): string | null => (done.text !== undefined && done.text.length <= SHORT ? done.text : null);

/** Whether whoever runs a snippet must have the file. */
export const needsFile = (done: Done): boolean => done.file !== '' && inline(done) === null;

const quoted = (text: string): string => "'" + text.replaceAll("'", "'\\''") + "'";

export function curl(done: Done, origin: string, keyed: boolean): string {
  const lines = ['curl ' + quoted(origin + done.path), '-X ' + done.method];
  if (keyed) lines.push('-H "Authorization: Bearer $TENSORMILL_KEY"');
  if (done.accept) lines.push('-H ' + quoted('Accept: ' + done.accept));
  if (done.type) lines.push('-H ' + quoted('Content-Type: ' + done.type));
  const body = inline(done);
  if (body !== null) lines.push('--data-raw ' + quoted(body));
  else if (done.file) lines.push('--data-binary ' + quoted('@' + done.file));
  if (done.accept === 'application/x-npz') lines.push('-o outputs.npz');
  return lines.join(' \\\n  ');
}

const literal = (text: string): string => JSON.stringify(text);

export function python(done: Done, origin: string, keyed: boolean): string {
  const headers = [keyed ? '"Authorization": "Bearer " + os.environ["TENSORMILL_KEY"]' : '',
    done.accept ? '"Accept": ' + literal(done.accept) : '', done.type ? '"Content-Type": ' + literal(done.type) : ''].filter(Boolean);
  const npz = done.accept === 'application/x-npz', body = inline(done);
  return ['import ' + [npz ? 'io' : 'json', ...(keyed ? ['os'] : []), 'urllib.request'].join(', '), ...(npz ? ['', 'import numpy as np'] : []), '',
    body !== null ? 'body = ' + literal(body) + '.encode()' : done.file ? 'body = open(' + literal(done.file) + ', "rb").read()' : 'body = b""',
    'request = urllib.request.Request(' + literal(origin + done.path) + ', data=body, method=' + literal(done.method) + ',',
    '                                 headers={' + headers.join(', ') + '})',
    'with urllib.request.urlopen(request) as answer:',
    npz ? '    outputs = np.load(io.BytesIO(answer.read()))' : '    answer = json.load(answer)',
    npz ? 'for name in outputs.files:\n    print(name, outputs[name].shape)' : 'print(answer)'].join('\n');
}

export function javascript(done: Done, origin: string, keyed: boolean): string {
  const headers = [keyed ? 'Authorization: `Bearer ${process.env.TENSORMILL_KEY}`' : '',
    done.accept ? 'Accept: ' + literal(done.accept) : '', done.type ? "'Content-Type': " + literal(done.type) : ''].filter(Boolean);
  const npz = done.accept === 'application/x-npz', body = inline(done);
  const reads = needsFile(done);
  return [...(reads || npz ? ["import {" + [reads ? 'readFile' : '', npz ? 'writeFile' : ''].filter(Boolean).join(', ') + "} from 'node:fs/promises';", ''] : []),
    'const answer = await fetch(' + literal(origin + done.path) + ', {',
    '  method: ' + literal(done.method) + ',', '  headers: {' + headers.join(', ') + '},',
    ...(body !== null ? ['  body: ' + literal(body) + ','] : reads ? ['  body: await readFile(' + literal(done.file) + '),'] : []), '});',
    'if (!answer.ok) throw new Error(await answer.text());',
    npz ? "await writeFile('outputs.npz', Buffer.from(await answer.arrayBuffer()));" : 'console.log(await answer.json());'].join('\n');
}
