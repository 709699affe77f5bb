// The few elements that all views are made of. What the server says is a stranger's data: it becomes text, never markup.
import type {ComponentChildren, JSX} from 'preact';
import {useState} from 'preact/hooks';
import {shape, shortId, when} from './format';
import {attempt, say} from './notify';
import {href, place, setQuery} from './router';
import {S} from './strings';
import type {TensorSpec} from './types';

export interface Column<T> { title: string; cell: (row: T) => ComponentChildren; numeric?: boolean }

export function Table<T>({label, columns, rows, keyOf, empty}: {
  label: string; columns: Column<T>[]; rows: readonly T[]; keyOf: (row: T) => string; empty?: ComponentChildren;
}): JSX.Element {
  if (rows.length === 0) return <p class="nothing">{empty}</p>;
  return (
    <div class="wide" tabIndex={0} role="region" aria-label={label}>
      <table>
        <caption class="hidden">{label}</caption>
        <thead>
          <tr>{columns.map((column) => <th key={column.title} scope="col" class={column.numeric ? 'numeric' : ''}>
            {column.title || <span class="hidden">{S.actions}</span>}</th>)}</tr>
        </thead>
        <tbody>
          {rows.map((row) => <tr key={keyOf(row)}>
            {columns.map((column) => <td key={column.title} class={column.numeric ? 'numeric' : ''}>{column.cell(row)}</td>)}
          </tr>)}
        </tbody>
      </table>
    </div>);
}

/** Links through a list that is paged by cursors: the back button leads back. */
export function Pager({next, changed, show}: {next: string | null; changed: boolean; show: () => void}): JSX.Element {
  const cursor = place().query.get('cursor');
  return (
    <div class="pager">
      {changed && <button type="button" class="quiet" onClick={show}>{S.list.changed}</button>}
      {cursor && <a class="button quiet" href={'#'} onClick={(event) => { event.preventDefault(); setQuery({cursor: null}); }}>{S.list.first}</a>}
      {cursor && <button type="button" class="quiet" onClick={() => history.back()}>{S.list.previous}</button>}
      {next && <button type="button" class="quiet" onClick={() => { setQuery({cursor: next}); window.scrollTo(0, 0); }}>{S.list.next}</button>}
    </div>);
}

export const cursorOf = (query: URLSearchParams, limit = 50): string => {
  const cursor = query.get('cursor');
  return 'limit=' + limit + (cursor ? '&cursor=' + encodeURIComponent(cursor) : '');
};

/** A button whose work may fail: while it works it is disabled, an error is shown above the view. */
export function Action({children, work, kind = '', disabled = false, label, pressed}: {
  children: ComponentChildren; work: () => Promise<unknown> | unknown; kind?: string; disabled?: boolean; label?: string; pressed?: boolean;
}): JSX.Element {
  const [busy, setBusy] = useState(false);
  const press = async () => {
    setBusy(true);
    await attempt(work);
    setBusy(false);
  };
  return <button type="button" class={kind} disabled={busy || disabled} aria-label={label} aria-pressed={pressed} onClick={() => void press()}>{children}</button>;
}

/** A form whose work may fail. */
export function Form({id, children, work, title, submit}: {
  id: string; children: ComponentChildren; title: string; submit: string; work: (data: FormData) => Promise<unknown> | unknown;
}): JSX.Element {
  const [busy, setBusy] = useState(false);
  const submitted = async (event: JSX.TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const data = new FormData(event.currentTarget);
    setBusy(true);
    await attempt(() => work(data));
    setBusy(false);
  };
  return (
    <form id={id} class="panel" onSubmit={(event) => void submitted(event)} aria-labelledby={id + '-title'}>
      <h2 id={id + '-title'}>{title}</h2>
      {children}
      <p class="actions"><button class="primary" disabled={busy}>{submit}</button></p>
    </form>);
}

export function Field({label, hint, children}: {label: string; hint?: ComponentChildren; children: ComponentChildren}): JSX.Element {
  return <label class="field"><span>{label}</span>{children}{hint ? <small>{hint}</small> : null}</label>;
}

export function Facts({rows}: {rows: [string, ComponentChildren][]}): JSX.Element {
  return <dl>{rows.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>;
}

/** Views of one thing, each with its own address. */
export function Tabs({tabs, chosen, label}: {tabs: [string, string][]; chosen: string; label: string}): JSX.Element {
  const {view, id} = place();
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map(([name, title], i) => <a key={name} href={href(view, id, i === 0 ? {} : {tab: name})}
        aria-current={name === chosen ? 'page' : undefined}>{title}</a>)}
    </nav>);
}

export function Empty({title, children}: {title: string; children: ComponentChildren}): JSX.Element {
  return <div class="empty"><h2>{title}</h2>{children}</div>;
}

export const Id = ({id}: {id: string}): JSX.Element => <code title={id}>{shortId(id)}</code>;
export const Time = ({at}: {at: string}): JSX.Element => <time dateTime={at}>{when(at)}</time>;
export const State = ({state}: {state: string}): JSX.Element => <span class={'state ' + state}>{S.states[state] ?? state}</span>;
export const Loading = (): JSX.Element => <p class="nothing" aria-busy="true">{S.loading}</p>;

/** The element types of tensors, each once: "float32, int64". */
export const typesOf = (tensors: readonly TensorSpec[]): string => [...new Set(tensors.map((tensor) => tensor.dtype))].join(', ');

export function Specs({tensors}: {tensors: readonly TensorSpec[]}): JSX.Element {
  return <>{tensors.map((tensor) => <div key={tensor.name} class="spec">{tensor.name} <code>{tensor.dtype + shape(tensor.shape)}</code></div>)}</>;
}

/** A bar of a chart that is a table's cell; its number stands beside it in words. */
export function Bar({part, tone = ''}: {part: number; tone?: string}): JSX.Element {
  return <span class={'bar ' + tone} aria-hidden="true"><span style={{width: Math.max(0, Math.min(1, part)) * 100 + '%'}} /></span>;
}

/** Text that others run or read, with a button that copies it. */
export function Snippet({code, label}: {code: string; label: string}): JSX.Element {
  const copy = async () => {
    await navigator.clipboard.writeText(code);
    say(S.copied);
  };
  return (
    <div class="snippet">
      <pre tabIndex={0} aria-label={label}>{code}</pre>
      <Action kind="quiet" work={copy} label={S.copy + ' ' + label}>{S.copy}</Action>
    </div>);
}

export function confirmed(question: string): boolean {
  return window.confirm(question);
}
