// The audit trail: who changed what, newest first.
import type {JSX} from 'preact';
import {useRows} from '../load';
import {setQuery, usePlace} from '../router';
import {S} from '../strings';
import type {AuditEntry} from '../types';
import {cursorOf, Field, Loading, Pager, Table, Time} from '../ui';

const FILTERS = ['caller', 'method', 'status'] as const;

export function Audit(): JSX.Element {
  const {query} = usePlace();
  const filter = FILTERS.map((name) => (query.get(name) ? '&' + name + '=' + encodeURIComponent(query.get(name)!) : '')).join('');
  const list = useRows<AuditEntry>('/v1/audit?' + cursorOf(query) + filter, (entry) => entry.request_id + entry.ts, 10000);
  const submitted = (event: JSX.TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    setQuery({cursor: null, ...Object.fromEntries(FILTERS.map((name) => [name, String(form.get(name) ?? '').trim()]))});
  };
  return (
    <>
      <h1>{S.nav.audit}</h1>
      <form id="filter" class="filters" onSubmit={submitted}>
        <Field label={S.columns.caller}><input name="caller" value={query.get('caller') ?? ''} /></Field>
        <Field label={S.columns.method}><select name="method" value={query.get('method') ?? ''}>
          <option value="">{S.list.any}</option>{['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].map((name) => <option key={name}>{name}</option>)}</select></Field>
        <Field label={S.columns.status}><input name="status" inputMode="numeric" pattern="[0-9]*" value={query.get('status') ?? ''} /></Field>
        <button class="primary">{S.list.filter}</button>
      </form>
      {!list.rows ? <Loading /> : <Table label={S.nav.audit} rows={list.rows} keyOf={(entry) => entry.request_id + entry.ts} empty={S.list.nothing} columns={[
        {title: S.columns.time, cell: (entry) => <Time at={entry.ts} />},
        {title: S.columns.caller, cell: (entry) => entry.caller || '—'},
        {title: S.columns.method, cell: (entry) => entry.method},
        {title: S.columns.address, cell: (entry) => <code class="long">{entry.target}</code>},
        {title: S.columns.status, numeric: true, cell: (entry) => <span class={entry.status >= 400 ? 'failed' : ''}>{entry.status}</span>},
        {title: S.columns.client, cell: (entry) => entry.client || entry.peer},
        {title: S.columns.request, cell: (entry) => <code title={entry.request_id}>{entry.request_id.slice(0, 10)}</code>},
      ]} />}
      <Pager next={list.next} changed={list.changed} show={list.show} />
    </>);
}
