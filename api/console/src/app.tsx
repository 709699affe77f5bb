// The frame around all views: where one is, what went wrong, the place for a key, and files that are dropped anywhere.
import type {JSX} from 'preact';
import {useEffect, useErrorBoundary, useRef, useState} from 'preact/hooks';
import {currentKey, get, onKeyWanted, Problem, setKey} from './http';
import {DropZone} from './drop';
import {lazyView} from './lazy';
import {clearError, currentNotice, currentWords, messageOf, subscribe} from './notify';
import {href, usePlace} from './router';
import {S} from './strings';
import type {Info} from './types';
import {views} from './views';

const THEME = 'tensormill-theme';

export function App(): JSX.Element {
  const here = usePlace();
  const [wanted, setWanted] = useState(false);
  const [turn, setTurn] = useState(0);
  useEffect(() => onKeyWanted(() => setWanted(true)), []);
  const entry = views[here.view] ?? views['models']!;
  const title = S.nav[entry.nav] ?? '';
  useEffect(() => { document.title = (here.id ? here.id.slice(0, 40) + ' · ' : '') + title + ' · TensorMill'; }, [here.id, title]);
  const main = useRef<HTMLElement>(null);
  const seen = useRef(here.view + '/' + here.id);
  // Another view: errors of the one before are over, and the keyboard goes on at its beginning.
  useEffect(() => {
    const now = here.view + '/' + here.id;
    if (seen.current === now) return;
    seen.current = now;
    clearError();
    window.scrollTo(0, 0);
    main.current?.focus({preventScroll: true});
  }, [here.view, here.id]);
  const useIt = (key: string) => {
    setKey(key);
    setWanted(false);
    clearError();
    setTurn(turn + 1);
  };
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); main.current?.focus(); }}>{S.skip}</a>
      <Side chosen={entry.nav} turn={turn} />
      <main ref={main} id="main" tabIndex={-1}>
        {wanted && <KeyForm use={useIt} />}
        <ErrorBox />
        <Refused />
        <Shown key={here.view + '/' + here.id + '/' + turn} view={here.view} id={here.id} />
      </main>
      <Words />
      <DropZone />
    </>);
}

/** A fault of the console itself must not leave an empty page. */
function Shown({view, id}: {view: string; id: string}): JSX.Element {
  const [fault] = useErrorBoundary();
  if (fault) return <p class="failed">{S.errors.fault(messageOf(fault))}</p>;
  const entry = views[view] ?? views['models']!;
  const View = id && entry.one ? entry.one : entry.all;
  return <div id="page" data-page={view}><View id={id} /></div>;
}

function Side({chosen, turn}: {chosen: string; turn: number}): JSX.Element {
  const [info, setInfo] = useState<Info | null>(null);
  useEffect(() => { void get<Info>('/v1/info').then(setInfo, () => setInfo(null)); }, [turn]);
  return (
    <header>
      <h1><a href={href('models')}><img src="/console/icon.svg" alt="" width="22" height="22" /> TensorMill</a></h1>
      <nav aria-label={S.navLabel} id="nav">
        {Object.entries(S.nav).map(([name, title]) =>
          <a key={name} href={href(name)} aria-current={name === chosen ? 'page' : undefined}>{title}</a>)}
      </nav>
      <div class="about">
        {info && <p id="info">{info.version + ' · ' + info.host.cpu + ', ' + S.cores(info.host.cores)}</p>}
        <p><a href="/docs">{S.docs}</a></p>
        <ThemeButton />
      </div>
    </header>);
}

function ThemeButton(): JSX.Element {
  const [theme, setTheme] = useState(localStorage.getItem(THEME) ?? '');
  useEffect(() => {
    if (theme) document.documentElement.dataset['theme'] = theme;
    else delete document.documentElement.dataset['theme'];
  }, [theme]);
  const turn = () => {
    const dark = theme ? theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
    const next = dark ? 'light' : 'dark';
    localStorage.setItem(THEME, next);
    setTheme(next);
  };
  return <button type="button" class="quiet small" onClick={turn}>{S.theme}</button>;
}

function KeyForm({use}: {use: (key: string) => void}): JSX.Element {
  const submitted = (event: JSX.TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    use(String(new FormData(event.currentTarget).get('key')).trim());
  };
  return (
    <form id="key" class="panel" onSubmit={submitted}>
      <h2>{S.key.title}</h2>
      <p>{currentKey() ? S.key.wrong : S.key.why}</p>
      <label class="field"><span>{S.key.label}</span><input name="key" type="password" autocomplete="off" required /></label>
      <p class="actions"><button class="primary">{S.key.use}</button></p>
    </form>);
}

function useNotices(): void {
  const [, draw] = useState(0);
  useEffect(() => {
    const again = () => draw((n) => n + 1);
    // What was said before this listens is shown, too.
    again();
    return subscribe(again);
  }, []);
}

function ErrorBox(): JSX.Element {
  useNotices();
  const notice = currentNotice();
  if (!notice) return <div role="alert" />;
  const {error} = notice;
  return (
    <div role="alert">
      <div id="error">
        <p>{messageOf(error)}</p>
        {error instanceof Problem && <ErrorDetails error={error} />}
      </div>
    </div>);
}

const RefusedGraph = lazyView(() => import('./graph/refused').then((module) => module.RefusedGraph));

/** Beside the alert, not in it: a graph is no announcement. */
function Refused(): JSX.Element | null {
  useNotices();
  const error = currentNotice()?.error;
  return error instanceof Problem && error.model?.graph ? <RefusedGraph key={error.message} graph={error.model.graph} /> : null;
}

/** Each place of a refused body; of a model that cannot be taken, each operator that is in the way. */
export function ErrorDetails({error}: {error: Pick<Problem, 'errors' | 'model'>}): JSX.Element {
  return (
    <>
      {error.errors.length > 0 && <ul tabIndex={0} aria-label={S.errors.list}>{error.errors.slice(0, 200).map((detail, i) => <li key={i}>
        <code>{detail.node || detail.pointer || ''}</code> {detail.detail || detail.reason || ''}</li>)}</ul>}
      {error.model && <p>{S.errors.readable(Object.entries(error.model.operators).map(([op, n]) => op + ' × ' + n).join(', '))}</p>}
    </>);
}

function Words(): JSX.Element {
  useNotices();
  return <p class="hidden" role="status" aria-live="polite">{currentWords()}</p>;
}
