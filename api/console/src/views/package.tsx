// One package: facts, the time of each step, its graph and code, trying it and serving it.
import type {JSX} from 'preact';
import {useState} from 'preact/hooks';
import {bytes, ms, percent, shortId} from '../format';
import {download, text} from '../http';
import {lazyView} from '../lazy';
import {useGet} from '../load';
import {profileOf, profiles} from '../profile';
import {href, setQuery, usePlace} from '../router';
import {S} from '../strings';
import type {Package, ProfileStep} from '../types';
import {Action, Bar, Facts, Field, Id, Loading, Specs, Table, Tabs, Time, typesOf} from '../ui';
import {DeployForm} from './deployform';
import {tunedOf} from './packages';

const GraphTab = lazyView(() => import('../graph/viewer').then((module) => module.GraphTab));
const TryTab = lazyView(() => import('../tryout/try').then((module) => module.TryTab));
export const STAGES = ['relay', 'te', 'tir', 'll', 'asm'] as const;

export function PackageView({id}: {id: string}): JSX.Element {
  const {query} = usePlace();
  const {data: item} = useGet<Package>('/v1/packages/' + id);
  const tab = query.get('tab') ?? 'about';
  if (!item) return <Loading />;
  return (
    <>
      <h1>{S.columns.package} <small><code title={item.id}>{shortId(item.id)}</code></small></h1>
      <Tabs label={S.columns.package} chosen={tab} tabs={[['about', S.tabs.about], ['layers', S.tabs.layers], ['graph', S.tabs.graph],
        ['code', S.tabs.code], ['try', S.tabs.try], ['serve', S.tabs.serve]]} />
      {tab === 'about' && <About item={item} />}
      {tab === 'layers' && <Layers item={item} />}
      {tab === 'graph' && <GraphTab model={item.metadata.model_digest} item={item} />}
      {tab === 'code' && <Code item={item} />}
      {tab === 'try' && <TryTab path={'/v1/packages/' + id + '/run'} inputs={item.inputs} />}
      {tab === 'serve' && <DeployForm item={item} />}
    </>);
}

function About({item}: {item: Package}): JSX.Element {
  const {metadata} = item;
  const members = Object.entries(metadata.members).sort(([, a], [, b]) => b.size - a.size);
  // One plan for all shapes says neither what a run takes nor what it computes.
  const isFree = metadata.flops === 0 && item.inputs.some(({shape}) => shape.some((dim) => typeof dim === 'string'));
  const whole = members.reduce((sum, [, member]) => sum + member.size, 0) || 1;
  return (
    <>
      <Facts rows={[
        [S.columns.model, <a href={href('models', metadata.model_digest)}><Id id={metadata.model_digest} /></a>],
        [S.columns.inputs, <Specs tensors={item.inputs} />], [S.columns.outputs, <Specs tensors={item.outputs} />],
        [S.columns.target, <code>{metadata.target}</code>],
        [S.job.precision, S.job.precisionOf(typesOf(item.inputs), typesOf(item.outputs)) +
          (metadata.options['quantized'] === 'exact' ? ' ' + S.packages.exact : '')],
        [S.packages.kernels, S.packages.kernelsTuned(tunedOf(item))],
        [S.packages.work, isFree ? S.packages.workFree : (metadata.flops / 1e9).toPrecision(3) + ' GFLOP'],
        [S.packages.memory, isFree ? S.packages.memoryFree(bytes(metadata.weight_bytes)) : S.packages.memoryParts(bytes(metadata.weight_bytes), bytes(metadata.arena_bytes), bytes(metadata.worker_workspace_bytes))],
        [S.columns.made, <Time at={item.created_at} />],
        [S.columns.deployedAs, item.deployments.length ? item.deployments.map((name) => <a key={name} href={href('deployments', name)}>{name} </a>) : '—'],
        [S.packages.compiler, metadata.compiler_build],
        [S.columns.id, <code>{item.id}</code>],
      ]} />
      <p class="actions">
        <a class="button primary" href={href('packages', item.id, {tab: 'serve'})}>{S.tabs.serve}</a>
        <Action work={() => download('/v1/packages/' + item.id + '/archive', shortId(item.id) + '.tar')}>{S.packages.download(bytes(item.archive.size))}</Action>
        <a class="button" href={href('compare', '', {p: item.id})}>{S.packages.compareThis}</a>
      </p>
      <h2>{S.packages.parts}</h2>
      <Table label={S.packages.parts} rows={members} keyOf={([name]) => name} columns={[
        {title: S.columns.name, cell: ([name]) => <code>{name}</code>},
        {title: S.columns.size, numeric: true, cell: ([, member]) => bytes(member.size)},
        {title: S.columns.share, cell: ([, member]) => <Bar part={member.size / whole} />},
      ]} />
    </>);
}

/** One run on random inputs, step by step. */
function Layers({item}: {item: Package}): JSX.Element {
  const [steps, setSteps] = useState<ProfileStep[] | null>(profiles.get(item.id) ?? null);
  const whole = (steps ?? []).reduce((sum, step) => sum + step.duration_us, 0) || 1;
  const most = Math.max(1e-9, ...(steps ?? []).map((step) => step.duration_us));
  return (
    <>
      <p class="hint">{S.packages.layersWhy}</p>
      <p class="actions"><Action kind="primary" work={async () => setSteps(await profileOf(item.id, true))}>{steps ? S.packages.measureAgain : S.packages.measure}</Action></p>
      {steps && <Table label={S.tabs.layers} rows={steps} keyOf={(step) => step.step} columns={[
        {title: S.columns.step, cell: (step) => <a href={href('packages', item.id, {tab: 'code', kernel: step.function, stage: 'tir'})}>{step.step}</a>},
        {title: S.columns.time, numeric: true, cell: (step) => ms(step.duration_us / 1000)},
        {title: S.columns.share, numeric: true, cell: (step) => percent(step.duration_us / whole)},
        {title: '', cell: (step) => <Bar part={step.duration_us / most} tone="heat" />},
        {title: S.columns.gflops, numeric: true, cell: (step) => (step.flops ? (step.flops / step.duration_us / 1e3).toFixed(1) : '—')},
        {title: S.columns.gbs, numeric: true, cell: (step) => (step.bytes / step.duration_us / 1e3).toFixed(1)},
        {title: S.columns.origins, cell: (step) => <span class="origins">{step.origins.join(', ')}</span>},
      ]} />}
    </>);
}

/** The part of a stage's text that is about one kernel: the stages of kernels begin each with a line of its name. */
export function sectionOf(code: string, kernel: string): string {
  for (const mark of ['# ', '; ']) {
    const start = code.startsWith(mark + kernel + '\n') ? 0 : code.indexOf('\n' + mark + kernel + '\n') + 1;
    if (start === 0 && !code.startsWith(mark + kernel + '\n')) continue;
    const next = new RegExp('\\n' + mark + '[A-Za-z_][A-Za-z0-9_]*_[0-9a-f]{12}\\n', 'g');
    next.lastIndex = start + mark.length + kernel.length;
    const found = next.exec(code);
    return code.slice(start, found ? found.index + 1 : undefined);
  }
  return '';
}

function Code({item}: {item: Package}): JSX.Element {
  const {query} = usePlace();
  const [code, setCode] = useState<{stage: string; text: string} | null>(null);
  const stage = query.get('stage') ?? 'relay', kernel = query.get('kernel') ?? '';
  const show = async () => setCode({stage, text: await text('/v1/packages/' + item.id + '/code?stage=' + stage)});
  const shown = code && code.stage === stage ? (kernel && stage !== 'relay' ? sectionOf(code.text, kernel) || S.packages.noCode : code.text) : '';
  return (
    <div class="panel">
      <h2>{S.tabs.code}</h2>
      <Field label={S.packages.stage} hint={S.packages.stages[stage]}>
        <select name="stage" value={stage} onChange={(event) => setQuery({stage: event.currentTarget.value})}>
          {STAGES.map((name) => <option key={name} value={name}>{name}</option>)}</select></Field>
      <Field label={S.columns.kernel} hint={S.packages.kernelHint}>
        <select name="kernel" value={kernel} onChange={(event) => setQuery({kernel: event.currentTarget.value})}>
          <option value="">{S.packages.allKernels}</option>
          {item.metadata.kernels.map(({symbol}) => <option key={symbol} value={symbol}>{symbol}</option>)}</select></Field>
      <p class="actions"><Action kind="primary" work={show}>{S.show}</Action></p>
      {code && <pre id="code" tabIndex={0} aria-label={S.tabs.code}>{shown.length > 400000 ? shown.slice(0, 400000) + '\n' + S.packages.cut : shown}</pre>}
    </div>);
}
