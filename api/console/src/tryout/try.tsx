// Trying a package or a deployment: a picture, tensors in NPZ or JSON, many times over, and as code for elsewhere.
import type {JSX} from 'preact';
import {useState} from 'preact/hooks';
import {Histogram} from '../charts';
import {useDrops} from '../drop';
import {ms, percentile, shape} from '../format';
import {currentKey, keep, request} from '../http';
import {say} from '../notify';
import {S} from '../strings';
import type {TensorSpec} from '../types';
import {Action, Field, Form, Snippet, Table} from '../ui';
import {type NpyArray, readNpz} from './npz';
import {PictureForm} from './picture';
import {curl, type Done, javascript, needsFile, python} from './snippets';
import {pictureInput} from './vision';
import {VisionForm} from './seeing';

/** One request that can be sent again. */
export interface Sent { done: Done; body: Blob | null }

export interface Timed { total: number; compute: number | null }

/** Sends it and tells how long it took: here, and as the server says. */
export async function sendOnce({done, body}: Sent): Promise<{response: Response; timed: Timed}> {
  const begin = performance.now();
  const headers: Record<string, string> = {};
  if (done.type) headers['Content-Type'] = done.type;
  if (done.accept) headers['Accept'] = done.accept;
  const response = await request(done.method, done.path, body ? {body, headers} : {headers});
  const compute = /compute;dur=([\d.]+)/.exec(response.headers.get('Server-Timing') ?? '');
  return {response, timed: {total: performance.now() - begin, compute: compute ? Number(compute[1]) : null}};
}

export function TryTab({path, inputs, deployment}: {path: string; inputs: TensorSpec[]; deployment?: string}): JSX.Element {
  const [sent, setSent] = useState<Sent | null>(null);
  const seeing = pictureInput(inputs);
  return (
    <>
      {deployment && <PictureForm path={path.replace(/\/infer$/, '/classify?top=5')} sent={setSent} />}
      {seeing && <VisionForm path={path} input={seeing} sent={setSent} />}
      <TensorForm path={path} inputs={inputs} sent={setSent} />
      {deployment && <JsonForm name={deployment} inputs={inputs} sent={setSent} />}
      {sent ? <><Repeat sent={sent} /><Snippets sent={sent} /></> : <p class="hint">{S.tryout.afterwards}</p>}
    </>);
}

interface Answer { arrays: NpyArray[]; bytes: ArrayBuffer; words: string }

function TensorForm({path, inputs, sent}: {path: string; inputs: TensorSpec[]; sent: (sent: Sent) => void}): JSX.Element {
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [file, setFile] = useState<File | null>(null);
  useDrops((dropped) => {
    if (!/\.npz$/i.test(dropped.name)) return false;
    setFile(dropped);
    return true;
  });
  const run = async (form: FormData) => {
    const mode = file ? '' : '?fill_mode=' + form.get('fill') + '&seed=' + form.get('seed');
    const once: Sent = {body: file, done: {method: 'POST', path: path + mode, type: file ? 'application/x-npz' : '', accept: 'application/x-npz', file: file ? file.name : ''}};
    const {response, timed} = await sendOnce(once);
    const bytes = await response.arrayBuffer();
    const version = response.headers.get('X-Deployment-Version');
    const words = (version ? S.tryout.version(version) + ' ' : '') + S.tryout.took(ms(timed.total), ms(timed.compute));
    setAnswer({arrays: await readNpz(bytes), bytes, words});
    say(words);
    sent(once);
  };
  return (
    <Form id="random" title={S.tryout.tensors} submit={S.tryout.run} work={run}>
      <p class="hint">{S.tryout.inputs(inputs.map((input) => input.name + ' ' + input.dtype + shape(input.shape)).join(', '))}</p>
      <Field label={S.tryout.npz} hint={file ? file.name : S.tryout.npzHint}>
        <input type="file" name="npz" accept=".npz" onChange={(event) => setFile(event.currentTarget.files?.[0] ?? null)} /></Field>
      {!file && <>
        <Field label={S.tryout.fill}><select name="fill">{(['random', 'ones', 'zeros'] as const).map((name) => <option key={name} value={name}>{S.tryout.fills[name]}</option>)}</select></Field>
        <Field label={S.tryout.seed}><input name="seed" type="number" min="0" value="1" /></Field></>}
      {answer && <div class="answer" aria-live="polite"><p>{answer.words}</p>
        <Arrays arrays={answer.arrays} />
        <p class="actions"><Action kind="quiet" work={() => keep(answer.bytes, 'outputs.npz')}>{S.tryout.save}</Action></p></div>}
    </Form>);
}

function statistics(values: ArrayLike<number | bigint | boolean | string>): string {
  let low = Infinity, high = -Infinity;
  for (let i = 0; i < values.length; ++i) {
    const value = Number(values[i]);
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return values.length === 0 ? '—' : S.tryout.range(Number(low.toPrecision(4)), Number(high.toPrecision(4)));
}

const SHOWN = 12;

export function Arrays({arrays, label = S.columns.outputs}: {arrays: NpyArray[]; label?: string}): JSX.Element {
  const first = ({values}: NpyArray) => Array.from({length: Math.min(SHOWN, values.length)}, (_, i) => {
    const value = values[i]!;
    return typeof value === 'number' ? String(Number(value.toPrecision(5))) : String(value);
  }).join(', ') + (values.length > SHOWN ? ', …' : '');
  return <Table label={label} rows={arrays} keyOf={(array) => array.name} columns={[
    {title: S.columns.name, cell: (array) => array.name},
    {title: S.columns.type, cell: (array) => <code>{array.dtype + shape(array.shape)}</code>},
    {title: S.tryout.rangeTitle, cell: (array) => statistics(array.values)},
    {title: S.tryout.first, cell: (array) => <span class="values">{first(array)}</span>},
  ]} />;
}

/** The names of /v2 for types. */
const datatypes: Record<string, string> = {float32: 'FP32', float64: 'FP64', float16: 'FP16', bool: 'BOOL', string: 'BYTES'};

/** A request of zeros in the form that /v2 takes, for the reader to change. */
export function jsonRequest(inputs: TensorSpec[]): string {
  return JSON.stringify({inputs: inputs.map((input) => {
    const extents = input.shape.map((dim) => (typeof dim === 'number' && dim >= 0 ? dim : 1));
    const total = extents.reduce((product, dim) => product * dim, 1);
    const datatype = datatypes[input.dtype] ?? input.dtype.toUpperCase();
    const value = datatype === 'BYTES' ? '' : datatype === 'BOOL' ? false : 0;
    return {name: input.name, shape: extents, datatype, data: new Array<typeof value>(Math.min(total, 4096)).fill(value)};
  })});
}

function JsonForm({name, inputs, sent}: {name: string; inputs: TensorSpec[]; sent: (sent: Sent) => void}): JSX.Element {
  const [answer, setAnswer] = useState('');
  const run = async (form: FormData) => {
    const text = String(form.get('json'));
    const body = new Blob([text], {type: 'application/json'});
    const once: Sent = {body, done: {method: 'POST', path: '/v2/models/' + encodeURIComponent(name) + '/infer', type: 'application/json', accept: 'application/json', file: 'request.json', text}};
    const {response} = await sendOnce(once);
    setAnswer(JSON.stringify(await response.json(), null, 2));
    sent(once);
  };
  return (
    <details class="panel-like"><summary>{S.tryout.json}</summary>
      <Form id="json" title={S.tryout.json} submit={S.tryout.run} work={run}>
        <p class="hint">{S.tryout.jsonHint}</p>
        <label class="field"><span>{S.tryout.jsonBody}</span><textarea name="json" rows={8} spellcheck={false}>{jsonRequest(inputs)}</textarea></label>
        {answer && <pre id="jsonanswer" tabIndex={0} aria-label={S.tryout.answer}>{answer.slice(0, 100000)}</pre>}
      </Form></details>);
}

const MOST = 1000;

function Repeat({sent}: {sent: Sent}): JSX.Element {
  const [times, setTimes] = useState<Timed[]>([]);
  const [count, setCount] = useState(100);
  const repeat = async () => {
    const all: Timed[] = [];
    for (let i = 0; i < Math.min(count, MOST); ++i) {
      const {response, timed} = await sendOnce(sent);
      await response.arrayBuffer();
      all.push(timed);
      if (i % 10 === 9) setTimes([...all]);
    }
    setTimes(all);
    say(S.tryout.repeated(all.length));
  };
  const totals = times.map((time) => time.total);
  const words = S.tryout.latencies(times.length, ms(percentile(totals, 0.5)), ms(percentile(totals, 0.95)), ms(percentile(totals, 0.99)),
    ms(percentile(times.map((time) => time.compute ?? time.total), 0.5)));
  return (
    <section class="panel" aria-labelledby="repeat-title"><h2 id="repeat-title">{S.tryout.repeat}</h2>
      <div class="filters"><Field label={S.tryout.count}><input id="times" type="number" min="1" max={MOST} value={count}
        onInput={(event) => setCount(Number(event.currentTarget.value))} /></Field>
      <Action kind="primary" work={repeat}>{S.tryout.go}</Action></div>
      {times.length > 1 && <figure id="histogram"><Histogram values={totals} label={words} unit="ms" /><figcaption>{words}</figcaption></figure>}
    </section>);
}

function Snippets({sent: {done, body}}: {sent: Sent}): JSX.Element {
  const [language, setLanguage] = useState('curl');
  const makers: Record<string, typeof curl> = {curl, Python: python, JavaScript: javascript};
  const code = makers[language]!(done, location.origin, currentKey() !== null);
  return (
    <section class="panel" id="snippets" aria-labelledby="snippets-title"><h2 id="snippets-title">{S.tryout.code}</h2>
      <div class="actions" role="group" aria-label={S.tryout.language}>{Object.keys(makers).map((name) =>
        <button key={name} type="button" class={name === language ? 'primary' : ''} aria-pressed={name === language} onClick={() => setLanguage(name)}>{name}</button>)}</div>
      <Snippet code={code} label={language} />
      {body && needsFile(done) && <p class="actions"><span class="hint">{S.tryout.reads(done.file)}</span>
        <Action kind="quiet" work={async () => keep(await body.arrayBuffer(), done.file)}>{S.tryout.saveFile(done.file)}</Action></p>}
    </section>);
}

