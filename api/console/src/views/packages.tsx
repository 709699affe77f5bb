// Packages: what jobs made. Several of them can be marked and compared.
import type {JSX} from 'preact';
import {useState} from 'preact/hooks';
import {SampleButton} from '../drop';
import {bytes} from '../format';
import {send} from '../http';
import {useRows} from '../load';
import {go, href, usePlace} from '../router';
import {S} from '../strings';
import type {Package} from '../types';
import {Action, confirmed, cursorOf, Empty, Id, Loading, Pager, Specs, Table, Time} from '../ui';

export const tunedOf = (item: Package): string =>
  item.metadata.kernels.filter((kernel) => kernel.tuning_record).length + ' / ' + item.metadata.kernels.length;

export function Packages(): JSX.Element {
  const {query} = usePlace();
  const [marked, setMarked] = useState<string[]>([]);
  const list = useRows<Package>('/v1/packages?' + cursorOf(query), (item) => item.id);
  const remove = async (item: Package) => {
    if (!confirmed(S.packages.confirmDelete(item.id.slice(7, 19)))) return;
    await send('DELETE', '/v1/packages/' + item.id);
    list.reload();
  };
  const mark = (id: string, on: boolean) => setMarked(on ? [...marked, id] : marked.filter((other) => other !== id));
  if (!list.rows) return <><h1>{S.nav.packages}</h1><Loading /></>;
  if (list.rows.length === 0)
    return <><h1>{S.nav.packages}</h1><Empty title={S.packages.none}><p>{S.packages.noneWhy}</p>
      <p><SampleButton /> <a class="button" href={href('models')}>{S.nav.models}</a></p></Empty></>;
  return (
    <>
      <h1>{S.nav.packages}</h1>
      <p class="actions"><button type="button" class="primary" disabled={marked.length < 2}
        onClick={() => go(href('compare', '', {p: marked.join(',')}))}>{S.packages.compare(marked.length)}</button></p>
      <Table label={S.nav.packages} rows={list.rows} keyOf={(item) => item.id} columns={[
        {title: S.columns.mark, cell: (item) => <input type="checkbox" aria-label={S.packages.mark(item.id.slice(7, 19))}
          checked={marked.includes(item.id)} onChange={(event) => mark(item.id, event.currentTarget.checked)} />},
        {title: S.columns.package, cell: (item) => <a href={href('packages', item.id)}><Id id={item.id} /></a>},
        {title: S.columns.inputs, cell: (item) => <Specs tensors={item.inputs} />},
        {title: S.columns.level, numeric: true, cell: (item) => item.metadata.opt_level},
        {title: S.columns.tuned, numeric: true, cell: tunedOf},
        {title: S.columns.size, numeric: true, cell: (item) => bytes(item.archive.size)},
        {title: S.columns.made, cell: (item) => <Time at={item.created_at} />},
        {title: S.columns.deployedAs, cell: (item) => item.deployments.map((name) => <a key={name} href={href('deployments', name)}>{name}</a>)},
        {title: '', cell: (item) => <Action kind="quiet" work={() => remove(item)} disabled={item.deployments.length > 0}
          label={S.delete + ' ' + item.id.slice(7, 19)}>{S.delete}</Action>},
      ]} />
      <Pager next={list.next} changed={list.changed} show={list.show} />
    </>);
}
