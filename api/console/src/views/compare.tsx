// Packages side by side. Which ones is in the address, so the link can be sent; times come from benchmark jobs, which the
// server keeps, so whoever opens it sees the same numbers.
import type {JSX} from 'preact';
import {useState} from 'preact/hooks';
import {SampleButton} from '../drop';
import {accuracyText, bytes, csv, digits, ms, percent, percentile, shortId} from '../format';
import {get, keep, list, request} from '../http';
import {useLoad} from '../load';
import {benchmarkOf, profileOf, profiles} from '../profile';
import {href, setQuery, usePlace} from '../router';
import {S} from '../strings';
import {readNpz} from '../tryout/npz';
import type {Job, Package, Page, ProfileStep, Report} from '../types';
import {Action, Bar, Empty, Field, Id, Loading, Table} from '../ui';
import {tunedOf} from './packages';

interface Entry { item: Package; median: number | null; p95: number | null; runs: number; accuracy: number | null }

const TIMED_JOBS = 200;
const READ_REPORTS = 10;

function entryOf(item: Package, jobs: Job[], reports: Report[]): Entry {
  const job = jobs.find((one) => one.result?.package === item.id && one.result.runs_ms);
  const runs = job?.result?.runs_ms ?? [];
  return {item, median: percentile(runs, 0.5), p95: percentile(runs, 0.95), runs: runs.length, accuracy: accuracyOf(item.id, reports)};
}

/** Of the newest report that has one of the package. */
function accuracyOf(id: string, reports: Report[]): number | null {
  for (const row of reports.flatMap((report) => report.configurations)) {
    if (row.package?.id === id && typeof row.quality?.accuracy === 'number') return row.quality.accuracy;
  }
  return null;
}

async function load(ids: string[], signal: AbortSignal): Promise<Entry[]> {
  const [items, jobs, reports] = await Promise.all([
    Promise.all(ids.map((id) => get<Package>('/v1/packages/' + id, signal))),
    list<Job>('/v1/jobs?kind=benchmark&state=succeeded', TIMED_JOBS, signal),
    list<Job>('/v1/jobs?kind=report&state=succeeded', READ_REPORTS, signal).then((made) =>
      Promise.all(made.map((job) => get<Report>('/v1/jobs/' + job.id + '/report?format=json', signal))))]);
  return items.map((item) => entryOf(item, jobs, reports));
}

async function outputsOf(id: string): Promise<Map<string, Float64Array>> {
  const response = await request('POST', '/v1/packages/' + id + '/run?fill_mode=random&seed=1', {headers: {Accept: 'application/x-npz'}});
  const arrays = await readNpz(await response.arrayBuffer());
  return new Map(arrays.map((array) => [array.name, Float64Array.from(array.values as ArrayLike<number>, Number)]));
}

/** The largest difference of an output's elements, against the largest element of the first package's: as the tests count. */
export function difference(first: Map<string, Float64Array>, other: Map<string, Float64Array>): number | null {
  let worst: number | null = null;
  for (const [name, a] of first) {
    const b = other.get(name);
    if (!b || b.length !== a.length) return null;
    let most = 0, far = 0;
    a.forEach((value, i) => {
      most = Math.max(most, Math.abs(value));
      far = Math.max(far, Math.abs(value - b[i]!));
    });
    worst = Math.max(worst ?? 0, most > 0 ? far / most : far);
  }
  return worst;
}

export function Compare(): JSX.Element {
  const {query} = usePlace();
  const ids = (query.get('p') ?? '').split(',').filter((id) => /^sha256:[0-9a-f]{64}$/.test(id));
  const {data: entries, reload} = useLoad('compare ' + ids.join(','), (signal) => load(ids, signal));
  const [deltas, setDeltas] = useState<Map<string, number | null>>(new Map());
  const [, draw] = useState(0);
  const measure = async () => {
    for (const id of ids) await benchmarkOf(id, true);
    reload();
  };
  const compareOutputs = async () => {
    const all = new Map<string, Map<string, Float64Array>>();
    for (const id of ids) all.set(id, await outputsOf(id));
    setDeltas(new Map(ids.map((id) => [id, difference(all.get(ids[0]!)!, all.get(id)!)])));
  };
  const compareLayers = async () => {
    for (const id of ids) await profileOf(id);
    draw((n) => n + 1);
  };
  return (
    <>
      <h1>{S.nav.compare}</h1>
      <Picker ids={ids} />
      {ids.length === 0 ? <Empty title={S.compare.none}><p>{S.compare.noneWhy}</p><p><SampleButton /></p></Empty> : !entries ? <Loading /> : <>
        <Whole entries={entries} deltas={deltas} />
        <p class="actions">
          <Action kind="primary" work={measure}>{S.compare.measure}</Action>
          <Action work={compareLayers}>{S.compare.layers}</Action>
          <Action work={compareOutputs} disabled={ids.length < 2}>{S.compare.outputs}</Action>
          <Action kind="quiet" work={() => keep(csv(tableOf(entries, deltas)), 'packages.csv', 'text/csv')}>CSV</Action>
        </p>
        <p class="hint">{S.compare.link}</p>
        {ids.every((id) => profiles.has(id)) && <Layers ids={ids} />}
      </>}
    </>);
}

function tableOf(entries: Entry[], deltas: Map<string, number | null>): (string | number | null | undefined)[][] {
  return [['package', 'target', 'opt_level', 'median_ms', 'p95_ms', 'archive_bytes', 'weight_bytes', 'arena_bytes', 'tuned_kernels', 'accuracy', 'output_difference'],
    ...entries.map(({item, median, p95, accuracy}) => [item.id, item.metadata.target, item.metadata.opt_level, median, p95, item.archive.size,
      item.metadata.weight_bytes, item.metadata.arena_bytes, tunedOf(item), accuracy, deltas.get(item.id)])];
}

function Whole({entries, deltas}: {entries: Entry[]; deltas: Map<string, number | null>}): JSX.Element {
  /** A number with a bar below it, against the largest of its column. */
  const barred = (title: string, words: (value: number | null) => string, of: (entry: Entry) => number | null) => {
    const most = Math.max(1e-12, ...entries.map((entry) => of(entry) ?? 0));
    return {title, numeric: true, cell: (entry: Entry) => <span class="barred">{words(of(entry))}{of(entry) !== null && <Bar part={of(entry)! / most} />}</span>};
  };
  const drop = (id: string) => setQuery({p: entries.map((entry) => entry.item.id).filter((other) => other !== id).join(',')});
  return <Table label={S.nav.compare} rows={entries} keyOf={(entry) => entry.item.id} columns={[
    {title: S.columns.package, cell: ({item}) => <a href={href('packages', item.id)}><Id id={item.id} /></a>},
    {title: S.columns.level, numeric: true, cell: ({item}) => item.metadata.opt_level},
    {title: S.columns.tuned, numeric: true, cell: ({item}) => tunedOf(item)},
    barred(S.columns.median, (value) => (value === null ? S.compare.notMeasured : ms(value)), ({median}) => median),
    barred('p95', ms, ({p95}) => p95),
    barred(S.columns.size, (value) => bytes(value ?? 0), ({item}) => item.archive.size),
    barred(S.compare.memory, (value) => bytes(value ?? 0), ({item}) => item.metadata.arena_bytes),
    barred(S.report.accuracy, accuracyText, ({accuracy}) => accuracy),
    {title: S.compare.difference, numeric: true, cell: ({item}) => deltaText(deltas, item.id)},
    {title: '', cell: ({item}) => <button type="button" class="quiet" aria-label={S.compare.drop(shortId(item.id))} onClick={() => drop(item.id)}>×</button>},
  ]} />;
}

function deltaText(deltas: Map<string, number | null>, id: string): string {
  const delta = deltas.get(id);
  return delta === undefined ? '—' : delta === null ? S.compare.otherShapes : delta === 0 ? '0' : digits(delta);
}

/** What each layer of the model takes in each package: steps are matched by the model's nodes that they compute. */
export function layerRows(all: ProfileStep[][]): {origin: string; times: (number | null)[]}[] {
  const rows = new Map<string, (number | null)[]>();
  all.forEach((steps, at) => {
    for (const step of steps) {
      const origin = step.origins[0] ?? step.step;
      const times = rows.get(origin) ?? new Array<number | null>(all.length).fill(null);
      times[at] = (times[at] ?? 0) + step.duration_us / 1000;
      rows.set(origin, times);
    }
  });
  return [...rows].map(([origin, times]) => ({origin, times}));
}

/** By how much a layer takes longer (+) or less (−) than in the first package. */
export function layerDelta(first: number | null | undefined, other: number | null | undefined): string {
  if (typeof first !== 'number' || typeof other !== 'number') return '—';
  const far = other - first;
  return (far < 0 ? '−' : '+') + ms(Math.abs(far)) + (first > 0 ? ' (' + (far < 0 ? '−' : '+') + percent(Math.abs(far) / first) + ')' : '');
}

function Layers({ids}: {ids: string[]}): JSX.Element {
  const rows = layerRows(ids.map((id) => profiles.get(id)!));
  const most = Math.max(1e-12, ...rows.flatMap((row) => row.times.map((time) => time ?? 0)));
  return <><h2>{S.compare.layersTitle}</h2><Table label={S.compare.layersTitle} rows={rows} keyOf={(row) => row.origin} columns={[
    {title: S.compare.layer, cell: (row) => row.origin},
    ...ids.flatMap((id, i) => [
      {title: shortId(id), numeric: true, cell: (row: typeof rows[number]) => ms(row.times[i])},
      {title: S.compare.barOf(shortId(id)), cell: (row: typeof rows[number]) => <Bar part={(row.times[i] ?? 0) / most} tone="heat" />},
      ...(i === 0 ? [] : [{title: S.compare.against(shortId(id), shortId(ids[0]!)), numeric: true, cell: (row: typeof rows[number]) => layerDelta(row.times[0], row.times[i])}])]),
  ]} />
  <p class="actions"><Action kind="quiet" work={() => keep(csv([['layer', ...ids], ...rows.map((row) => [row.origin, ...row.times])]), 'layers.csv', 'text/csv')}>CSV</Action></p></>;
}

function Picker({ids}: {ids: string[]}): JSX.Element {
  const {data} = useLoad('pick', (signal) => get<Page<Package>>('/v1/packages?limit=100', signal));
  const rest = (data?.items ?? []).filter((item) => !ids.includes(item.id));
  return (
    <Field label={S.compare.add}>
      <select id="add" value="" onChange={(event) => setQuery({p: [...ids, event.currentTarget.value].join(',')})}>
        <option value="">{rest.length === 0 ? S.compare.noMore : S.compare.choose}</option>
        {rest.map((item) => <option key={item.id} value={item.id}>{shortId(item.id)} · {item.inputs.map((input) => input.name).join(', ')} · {S.compare.level(item.metadata.opt_level)} · {bytes(item.archive.size)}</option>)}
      </select></Field>);
}
