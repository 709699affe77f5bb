// One deployment: its versions, its last hour, and a place to try it.
import type {JSX} from 'preact';
import {LineChart} from '../charts';
import {count, ms} from '../format';
import {get, send} from '../http';
import {lazyView} from '../lazy';
import {useGet} from '../load';
import {go, href, usePlace} from '../router';
import {S} from '../strings';
import type {Deployment, Traffic} from '../types';
import {PlacementForm, Replicas, WeightsForm} from './placement';
import {Action, confirmed, Facts, Id, Loading, Specs, State, Table, Tabs, Time} from '../ui';

const TryTab = lazyView(() => import('../tryout/try').then((module) => module.TryTab));

export function DeploymentView({id: name}: {id: string}): JSX.Element {
  const {query} = usePlace();
  const path = '/v1/deployments/' + encodeURIComponent(name);
  const {data: item, reload} = useGet<Deployment>(path, 3000);
  const tab = query.get('tab') ?? 'try';
  if (!item) return <Loading />;
  return (
    <>
      <h1>{item.name} <small>{S.deploy.one}</small></h1>
      <Tabs label={S.deploy.one} chosen={tab} tabs={[['try', S.tabs.try], ['versions', S.tabs.versions], ['traffic', S.tabs.traffic]]} />
      {tab === 'try' && <TryTab path={path + '/infer'} inputs={item.inputs} deployment={item.name} />}
      {tab === 'versions' && <Versions item={item} path={path} reload={reload} />}
      {tab === 'traffic' && <LastHour path={path} />}
    </>);
}

function Versions({item, path, reload}: {item: Deployment; path: string; reload: () => void}): JSX.Element {
  const use = async (version: string) => {
    // The whole specification that the version was put with: labels and the treatment of pictures come back, too.
    const spec = await get<Record<string, unknown>>(path + '/versions/' + version);
    await send('PUT', path, {...spec, keep_versions: Math.max(Number(spec['keep_versions'] ?? 1), Object.keys(item.versions).length)});
    reload();
  };
  const remove = async (version: string) => {
    if (!confirmed(S.deploy.confirmUnload(version))) return;
    await send('DELETE', path + '/versions/' + version);
    reload();
  };
  const previous = item.previous;
  const back = async () => {
    await send('POST', path + '/rollback');
    reload();
  };
  const rows = Object.entries(item.versions).sort(([a], [b]) => Number(b) - Number(a));
  return (
    <>
      <Facts rows={[[S.columns.inputs, <Specs tensors={item.inputs} />], [S.columns.outputs, <Specs tensors={item.outputs} />],
        [S.columns.created, <Time at={item.created_at} />]]} />
      <Table label={S.columns.versions} rows={rows} keyOf={([version]) => version} columns={[
        {title: S.columns.version, numeric: true, cell: ([version]) => version},
        ...(item.weights ? [{title: S.deploy.part, numeric: true, cell: ([version]: [string, unknown]) => part(item.weights!, version)}] : []),
        {title: S.columns.state, cell: ([, {state, reason}]) => <><State state={state} /> {reason}</>},
        {title: S.columns.package, cell: ([, {package: id}]) => <a href={href('packages', id)}><Id id={id} /></a>},
        {title: '', cell: ([version]) => (version === item.default_version && !item.weights ? <strong>{S.deploy.serves}</strong>
          : <div class="actions"><Action work={() => use(version)}>{S.deploy.rollBack(version)}</Action>
            <Action kind="quiet" work={() => remove(version)} label={S.deploy.unload + ' ' + version}>{S.deploy.unload}</Action></div>)},
      ]} />
      <p class="actions">{previous && <Action kind="quiet" work={back}>{S.deploy.back(previous.version)}</Action>}<Action kind="quiet danger" work={async () => {
        if (!confirmed(S.deploy.confirmDelete(item.name))) return;
        await send('DELETE', path);
        go(href('deployments'));
      }}>{S.deploy.stop}</Action></p>
      <Replicas item={item} />
      <WeightsForm key={JSON.stringify([item.weights, Object.keys(item.versions), item.default_version])} item={item} path={path} reload={reload} />
      <PlacementForm item={item} path={path} reload={reload} />
    </>);
}

function part(weights: Record<string, number>, version: string): string {
  const all = Object.values(weights).reduce((sum, one) => sum + one, 0);
  return (100 * (weights[version] ?? 0) / all).toFixed(1) + ' %';
}

function LastHour({path}: {path: string}): JSX.Element {
  const {data} = useGet<Traffic>(path + '/traffic', 5000);
  if (!data) return <Loading />;
  if (data.requests + data.failed === 0) return <p class="nothing">{S.deploy.noTraffic}</p>;
  const minutes = data.minutes, now = minutes.length - 1;
  const line = (value: (at: number) => number | null): [number, number][] =>
    minutes.map((_, i): [number, number | null] => [i - now, value(i)]).filter((point): point is [number, number] => point[1] !== null);
  const words = S.deploy.latencies(ms(data.p50_ms), ms(data.p95_ms), ms(data.p99_ms), count(data.requests));
  return (
    <>
      <Facts rows={[[S.columns.requests, count(data.requests)], [S.columns.failed, count(data.failed)], ['p50', ms(data.p50_ms)],
        ['p95', ms(data.p95_ms)], ['p99', ms(data.p99_ms)]]} />
      <figure><LineChart low={0} label={S.deploy.perMinute} unit=" min" lines={[{points: line((i) => minutes[i]!.requests)}]} /><figcaption>{S.deploy.perMinute}</figcaption></figure>
      <figure><LineChart low={0} label={words} unit=" min" lines={[
        {points: line((i) => minutes[i]!.p99_ms), tone: 'faint'}, {points: line((i) => minutes[i]!.p95_ms), dashed: true}, {points: line((i) => minutes[i]!.p50_ms)}]} />
      <figcaption>{words}</figcaption></figure>
    </>);
}
