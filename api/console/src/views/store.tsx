// The store: what it holds, who has it, and how to be rid of what nothing needs.
import type {JSX} from 'preact';
import {useState} from 'preact/hooks';
import {bytes, count} from '../format';
import {send} from '../http';
import {useGet} from '../load';
import {say} from '../notify';
import {S} from '../strings';
import type {Storage} from '../types';
import {Action, Bar, Facts, Loading, Table} from '../ui';

interface Report { dry_run: boolean; removed: {blobs: number; bytes: number; packages: number; uploads: number}; held: Record<string, number> }

export function Store(): JSX.Element {
  const {data: storage, reload} = useGet<Storage>('/v1/storage');
  const [words, setWords] = useState('');
  const collect = (query: string) => async () => {
    const {removed} = await send<Report>('POST', '/v1/gc' + query);
    const told = (query ? S.store.would : S.store.did)(count(removed.blobs), bytes(removed.bytes));
    setWords(told);
    say(told);
    if (!query) reload();
  };
  if (!storage) return <><h1>{S.nav.store}</h1><Loading /></>;
  const most = Math.max(1, ...storage.callers.map((caller) => caller.bytes));
  return (
    <>
      <h1>{S.nav.store}</h1>
      <Facts rows={[
        [S.store.blobs, count(storage.blobs.count) + ', ' + bytes(storage.blobs.bytes)],
        [S.store.referenced, count(storage.blobs.referenced)],
        [S.store.uploads, count(storage.uploads.count) + ', ' + bytes(storage.uploads.bytes)],
        [S.store.quota, storage.quota_bytes ? bytes(storage.quota_bytes) : S.store.noQuota],
        [S.store.free, bytes(storage.free_bytes)],
        ...Object.entries(storage.rows).map(([name, number]): [string, string] => [name.replaceAll('_', ' '), count(number)]),
      ]} />
      <p class="actions"><Action work={collect('?dry_run=1')}>{S.store.ask}</Action><Action work={collect('')}>{S.store.remove}</Action></p>
      <p>{words}</p>
      <h2>{S.store.callers}</h2>
      <Table label={S.store.callers} rows={storage.callers} keyOf={(caller) => caller.caller} empty={S.list.nothing} columns={[
        {title: S.columns.caller, cell: (caller) => caller.caller},
        {title: S.store.liveJobs, numeric: true, cell: (caller) => caller.live_jobs},
        {title: S.columns.size, numeric: true, cell: (caller) => bytes(caller.bytes)},
        {title: S.columns.share, cell: (caller) => <Bar part={caller.bytes / most} />},
      ]} />
    </>);
}
