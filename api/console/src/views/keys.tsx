// API keys: who may do what. The text of a new key is shown once and kept nowhere.
import type {JSX} from 'preact';
import {useState} from 'preact/hooks';
import {Problem, send} from '../http';
import {useGet} from '../load';
import {S} from '../strings';
import type {Key, Page} from '../types';
import {Action, confirmed, Empty, Field, Form, Loading, Snippet, Table, Time} from '../ui';

const SCOPES = ['infer', 'read', 'write', 'admin'] as const;

export function Keys(): JSX.Element {
  const {data, failed, reload} = useGet<Page<Key>>('/v1/keys?limit=100');
  const [made, setMade] = useState('');
  const create = async (form: FormData) => {
    const until = String(form.get('until') ?? '');
    const deployments = String(form.get('deployments') ?? '').split(/[\s,]+/).filter(Boolean);
    const scopes = SCOPES.filter((scope) => form.get(scope))
      .flatMap((scope) => (scope === 'infer' && deployments.length > 0 ? deployments.map((name) => 'infer:' + name) : [scope]));
    const key = await send<Key & {key: string}>('POST', '/v1/keys', {name: form.get('name'), scopes,
      ...(until ? {expires_at: new Date(until + 'T00:00:00Z').toISOString()} : {})});
    setMade(key.key);
    reload();
  };
  const revoke = async (key: Key) => {
    if (!confirmed(S.keys.confirm(key.name))) return;
    await send('DELETE', '/v1/keys/' + encodeURIComponent(key.name));
    reload();
  };
  if (!data && failed instanceof Problem && failed.status === 409)
    return <><h1>{S.nav.keys}</h1><Empty title={S.keys.off}><p>{failed.message}</p></Empty></>;
  if (!data) return <><h1>{S.nav.keys}</h1><Loading /></>;
  return (
    <>
      <h1>{S.nav.keys}</h1>
      {made && <div class="panel good"><h2>{S.keys.madeTitle}</h2><p>{S.keys.made}</p><Snippet code={made} label={S.keys.text} /></div>}
      <Table label={S.nav.keys} rows={data.items} keyOf={(key) => key.source + key.name} empty={S.list.nothing} columns={[
        {title: S.columns.name, cell: (key) => key.name},
        {title: S.keys.scopes, cell: (key) => key.scopes.map((scope) => <code key={scope} class="chip">{scope}</code>)},
        {title: S.keys.source, cell: (key) => (key.source === 'file' ? S.keys.file : S.keys.catalog)},
        {title: S.columns.created, cell: (key) => (key.created_at ? <Time at={key.created_at} /> : '—')},
        {title: S.keys.ends, cell: (key) => (key.expires_at ? <Time at={key.expires_at} /> : S.keys.never)},
        {title: '', cell: (key) => (key.source === 'file' ? '' : <Action kind="quiet" work={() => revoke(key)} label={S.keys.revoke + ' ' + key.name}>{S.keys.revoke}</Action>)},
      ]} />
      <Form id="newkey" title={S.keys.create} submit={S.keys.submit} work={create}>
        <Field label={S.columns.name}><input name="name" required pattern="[A-Za-z0-9][A-Za-z0-9._\-]{0,127}" /></Field>
        <fieldset><legend>{S.keys.scopes}</legend>
          {SCOPES.map((scope) => <label key={scope} class="check"><input type="checkbox" name={scope} /> <span>{scope}: {S.keys.scopeWords[scope]}</span></label>)}
        </fieldset>
        <Field label={S.keys.deployments} hint={S.keys.deploymentsHint}><input name="deployments" /></Field>
        <Field label={S.keys.until} hint={S.keys.untilHint}><input name="until" type="date" /></Field>
      </Form>
    </>);
}
