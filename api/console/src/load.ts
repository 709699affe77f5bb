// What a view shows comes from the server: loaded when it opens, again while it is open and looked at.
import {useCallback, useEffect, useRef, useState} from 'preact/hooks';
import {get} from './http';
import {showError} from './notify';
import type {Page} from './types';

export interface Loaded<T> { data: T | null; failed: unknown; reload: () => void }

/** `load` is called anew when `key` changes, on reload(), and each `period` milliseconds while the page is visible. */
export function useLoad<T>(key: string, load: (signal: AbortSignal) => Promise<T>, period = 0): Loaded<T> {
  const [state, setState] = useState<{key: string; data: T | null; failed: unknown}>({key, data: null, failed: null});
  const [turn, setTurn] = useState(0);
  const latest = useRef(load);
  latest.current = load;
  useEffect(() => {
    const leave = new AbortController();
    let timer = 0;
    const next = () => {
      if (period > 0 && !leave.signal.aborted) timer = window.setTimeout(() => void run(false), period);
    };
    const run = async (first: boolean) => {
      if (!first && document.hidden) return next();
      try {
        const data = await latest.current(leave.signal);
        if (!leave.signal.aborted) setState({key, data, failed: null});
      } catch (failed) {
        if (leave.signal.aborted) return;
        setState((before) => ({key, data: before.key === key ? before.data : null, failed}));
        if (first) showError(failed);
      }
      next();
    };
    void run(true);
    return () => {
      leave.abort();
      clearTimeout(timer);
    };
  }, [key, turn, period]);
  const reload = useCallback(() => setTurn((before) => before + 1), []);
  return {data: state.key === key ? state.data : null, failed: state.failed, reload};
}

export function useGet<T>(path: string, period = 0): Loaded<T> {
  return useLoad<T>(path, (signal) => get<T>(path, signal), period);
}

export interface Rows<T> { rows: T[] | null; next: string | null; changed: boolean; show: () => void; reload: () => void }

/**
 * One page of a list, which is read while the server's goes on: rows that are shown change in place, but rows that come or
 * go wait until the reader asks for them, so that nothing moves under the eyes or the screen reader.
 */
export function useRows<T>(path: string, keyOf: (row: T) => string, period = 4000): Rows<T> {
  const {data, reload} = useGet<Page<T>>(path, period);
  const [shown, setShown] = useState<{path: string; page: Page<T>} | null>(null);
  const wanted = useRef(false);
  const stands = shown !== null && shown.path === path;
  const same = stands && data !== null && keys(shown.page, keyOf) === keys(data, keyOf);
  const take = data !== null && (!stands || same || wanted.current || shown.page.items.length === 0);
  useEffect(() => {
    if (take && data) {
      wanted.current = false;
      setShown({path, page: data});
    }
  }, [data, path, take]);
  const page = take ? data : stands ? shown.page : null;
  return {
    rows: page ? page.items : null,
    next: page ? page.next_cursor : null,
    changed: !take && data !== null,
    show: () => { if (data) setShown({path, page: data}); },
    reload: () => { wanted.current = true; reload(); },
  };
}

const keys = <T>(page: Page<T>, keyOf: (row: T) => string): string => page.items.map(keyOf).join('\n');
