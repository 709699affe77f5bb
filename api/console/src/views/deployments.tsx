// Deployments: what serves.
import type {JSX} from 'preact';
import {SampleButton} from '../drop';
import {count, ms} from '../format';
import {get, send} from '../http';
import {useLoad, useRows} from '../load';
import {href, usePlace} from '../router';
import {S} from '../strings';
import type {Deployment, Traffic} from '../types';
import {Action, confirmed, cursorOf, Empty, Loading, Pager, State, Table} from '../ui';

export function Deployments(): JSX.Element {
  const {query} = usePlace();
  const list = useRows<Deployment>('/v1/deployments?' + cursorOf(query, 25), (item) => item.name);
  const names = (list.rows ?? []).map((item) => item.name);
  const {data: traffic} = useLoad<Map<string, Traffic>>('traffic ' + names.join(' '), async (signal) => new Map(await Promise.all(
    names.map(async (name) => [name, await get<Traffic>('/v1/deployments/' + encodeURIComponent(name) + '/traffic', signal)] as const))), 5000);
  const remove = async (name: string) => {
    if (!confirmed(S.deploy.confirmDelete(name))) return;
    await send('DELETE', '/v1/deployments/' + encodeURIComponent(name));
    list.reload();
  };
  if (!list.rows) return <><h1>{S.nav.deployments}</h1><Loading /></>;
  return (
    <>
      <h1>{S.nav.deployments}</h1>
      {list.rows.length === 0
        ? <Empty title={S.deploy.none}><p>{S.deploy.noneWhy}</p><p><SampleButton /> <a class="button" href={href('packages')}>{S.nav.packages}</a></p></Empty>
        : <Table label={S.nav.deployments} rows={list.rows} keyOf={(item) => item.name} columns={[
          {title: S.columns.name, cell: (item) => <a href={href('deployments', item.name)}>{item.name}</a>},
          {title: S.columns.default, cell: (item) => item.default_version ?? '—'},
          {title: S.columns.versions, cell: (item) => Object.entries(item.versions).map(([version, {state, reason}]) =>
            <div key={version}>{version} <State state={state} />{reason ? ' ' + reason : ''}</div>)},
          {title: S.columns.requests, numeric: true, cell: (item) => number(traffic?.get(item.name)?.requests)},
          {title: S.columns.failed, numeric: true, cell: (item) => number(traffic?.get(item.name)?.failed)},
          {title: 'p50', numeric: true, cell: (item) => ms(traffic?.get(item.name)?.p50_ms)},
          {title: 'p95', numeric: true, cell: (item) => ms(traffic?.get(item.name)?.p95_ms)},
          {title: 'p99', numeric: true, cell: (item) => ms(traffic?.get(item.name)?.p99_ms)},
          {title: '', cell: (item) => <Action kind="quiet" work={() => remove(item.name)} label={S.delete + ' ' + item.name}>{S.delete}</Action>},
        ]} />}
      {list.rows.length > 0 && <p class="hint">{S.deploy.lastHour}</p>}
      <Pager next={list.next} changed={list.changed} show={list.show} />
    </>);
}

const number = (value: number | undefined): string => (value === undefined ? '—' : count(value));
