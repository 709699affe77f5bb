// Where the reader is: the part of the address behind '#', as view/id?query. Each view has an address of its own, so the
// back button, bookmarks and links that are sent to others work.
import {useEffect, useState} from 'preact/hooks';

export interface Place {
  view: string;
  id: string;
  query: URLSearchParams;
}

export type Query = Record<string, string | number | null | undefined>;

const HOME = 'models';

export function place(hash: string = location.hash): Place {
  const [path = '', query = ''] = hash.replace(/^#/, '').split(/\?(.*)/s, 2);
  const [view = '', ...rest] = path.split('/');
  return {view: view || HOME, id: decode(rest.join('/')), query: new URLSearchParams(query)};
}

/** A stranger's link may hold what is no escape. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function href(view: string, id = '', query: Query = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== null && value !== undefined && value !== '') search.set(name, String(value));
  const tail = search.toString();
  return '#' + view + (id ? '/' + encodeURIComponent(id).replaceAll('%3A', ':') : '') + (tail ? '?' + tail : '');
}

export function go(address: string): void {
  location.hash = address;
}

/** Changes the query of the present view; `replace` leaves no step for the back button. */
export function setQuery(changes: Query, replace = false): void {
  const {view, id, query} = place();
  const all: Query = {...Object.fromEntries(query), ...changes};
  const address = href(view, id, all);
  if (address === location.hash) return;
  if (!replace) {
    location.hash = address;
    return;
  }
  history.replaceState(null, '', address);
  window.dispatchEvent(new HashChangeEvent('hashchange'));
}

export function usePlace(): Place {
  const [here, setHere] = useState(place());
  const first = location.hash;
  useEffect(() => {
    const changed = () => setHere(place());
    window.addEventListener('hashchange', changed);
    // Effects run behind the first picture: the address may be another by now.
    if (location.hash !== first) changed();
    return () => window.removeEventListener('hashchange', changed);
  }, []);
  return here;
}
