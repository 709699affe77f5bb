// One model: what it is, its graph, the jobs that can be started on it, and what they made.
import {lazyView} from '../lazy';
import type {JSX} from 'preact';
import {bytes, count} from '../format';
import {useGet} from '../load';
import {href, usePlace} from '../router';
import {S} from '../strings';
import type {Model, Package, Page} from '../types';
import {Bar, Empty, Facts, Id, Loading, Specs, Table, Tabs, Time} from '../ui';
import {JobForm} from './jobform';

const GraphTab = lazyView(() => import('../graph/viewer').then((module) => module.GraphTab));

export function ModelView({id}: {id: string}): JSX.Element {
  const {query} = usePlace();
  const {data: model} = useGet<Model>('/v1/models/' + encodeURIComponent(id));
  const tab = query.get('tab') ?? 'about';
  if (!model) return <Loading />;
  return (
    <>
      <h1>{model.name || S.unnamed} <small>{S.models.one}</small></h1>
      <Tabs label={S.models.one} chosen={tab} tabs={[['about', S.tabs.about], ['graph', S.tabs.graph], ['build', S.tabs.build],
        ['packages', S.nav.packages]]} />
      {tab === 'about' && <About model={model} />}
      {tab === 'graph' && <GraphTab model={model.id} />}
      {tab === 'build' && <JobForm model={model} />}
      {tab === 'packages' && <Made model={model} />}
    </>);
}

function About({model}: {model: Model}): JSX.Element {
  const ops = Object.entries(model.ops).sort(([, a], [, b]) => b - a);
  const most = ops[0]?.[1] ?? 1;
  return (
    <>
      <Facts rows={[
        [S.columns.inputs, <Specs tensors={model.inputs} />],
        [S.columns.outputs, <Specs tensors={model.outputs} />],
        [S.columns.parameters, count(model.parameters)],
        [S.columns.size, bytes(model.size) + ', ' + model.format],
        [S.columns.imported, <Time at={model.created_at} />],
        [S.columns.names, model.names.join(', ') || '—'],
        [S.columns.id, <Id id={model.id} />],
      ]} />
      <p class="actions">
        <a class="button primary" href={href('models', model.id, {tab: 'build'})}>{S.models.build}</a>
        <a class="button" href={href('models', model.id, {tab: 'graph'})}>{S.models.see}</a>
      </p>
      <h2>{S.models.operators}</h2>
      <Table label={S.models.operators} rows={ops} keyOf={([op]) => op} empty={S.models.noOperators} columns={[
        {title: S.columns.operator, cell: ([op]) => op},
        {title: S.columns.number, numeric: true, cell: ([, number]) => count(number)},
        {title: S.columns.share, cell: ([, number]) => <Bar part={number / most} />},
      ]} />
    </>);
}

function Made({model}: {model: Model}): JSX.Element {
  const {data} = useGet<Page<Package>>('/v1/packages?limit=100&model=' + encodeURIComponent(model.id), 4000);
  if (!data) return <Loading />;
  if (data.items.length === 0)
    return <Empty title={S.packages.none}><p><a class="button primary" href={href('models', model.id, {tab: 'build'})}>{S.models.build}</a></p></Empty>;
  return <Table label={S.nav.packages} rows={data.items} keyOf={(item) => item.id} columns={[
    {title: S.columns.package, cell: (item) => <a href={href('packages', item.id)}><Id id={item.id} /></a>},
    {title: S.columns.inputs, cell: (item) => <Specs tensors={item.inputs} />},
    {title: S.columns.level, numeric: true, cell: (item) => item.metadata.opt_level},
    {title: S.columns.tuned, numeric: true, cell: (item) => item.metadata.kernels.filter((kernel) => kernel.tuning_record).length + ' / ' + item.metadata.kernels.length},
    {title: S.columns.size, numeric: true, cell: (item) => bytes(item.archive.size)},
    {title: S.columns.made, cell: (item) => <Time at={item.created_at} />},
  ]} />;
}
