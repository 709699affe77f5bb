// Requests to the server. A key, where the server wants one, stays in this tab's session storage.
import {S} from './strings';
import type {ErrorDetail, Page, UnsupportedModel} from './types';

const KEY = 'tensormill-key';
let keyWanted: () => void = () => {};

export function onKeyWanted(handler: () => void): void {
  keyWanted = handler;
}

export const currentKey = (): string | null => sessionStorage.getItem(KEY);

export function setKey(key: string | null): void {
  if (key) sessionStorage.setItem(KEY, key);
  else sessionStorage.removeItem(KEY);
}

export function credentials(): Record<string, string> {
  const key = currentKey();
  return key ? {Authorization: 'Bearer ' + key} : {};
}

interface ProblemBody { code?: string; detail?: string; errors?: ErrorDetail[]; model?: UnsupportedModel }

/** What the server answers in place of success. */
export class Problem extends Error {
  readonly code: string;
  readonly errors: ErrorDetail[];
  readonly model: UnsupportedModel | null;

  constructor(readonly status: number, body: ProblemBody | null) {
    super(body?.detail || S.errors.status(status));
    this.code = body?.code ?? '';
    this.errors = body?.errors ?? [];
    this.model = body?.model ?? null;
  }
}

function parsed(text: string): ProblemBody | null {
  try {
    return JSON.parse(text) as ProblemBody;
  } catch {
    return null;
  }
}

export interface Options { body?: BodyInit; headers?: Record<string, string>; signal?: AbortSignal | undefined }

/** Throws a Problem, and shows the place for a key when it was for want of one. */
export async function request(method: string, path: string, options: Options = {}): Promise<Response> {
  const response = await fetch(path, {...options, method, headers: {...credentials(), ...options.headers}, signal: options.signal ?? null});
  if (response.status === 401) keyWanted();
  if (!response.ok) throw new Problem(response.status, parsed(await response.text()));
  return response;
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await request('GET', path, {headers: {Accept: 'application/json'}, signal})).json() as Promise<T>;
}

export async function text(path: string, signal?: AbortSignal): Promise<string> {
  return (await request('GET', path, {signal})).text();
}

export async function send<T>(method: string, path: string, body?: unknown): Promise<T> {
  const response = await request(method, path,
    body === undefined ? {} : {body: JSON.stringify(body), headers: {'Content-Type': 'application/json'}});
  return (response.status === 204 ? null : await response.json()) as T;
}

/** The items of a list, page by page, up to `most`. */
export async function list<T>(path: string, most: number, signal?: AbortSignal): Promise<T[]> {
  const items: T[] = [];
  let cursor: string | null = null;
  do {
    const tail: string = 'limit=' + Math.min(100, most) + (cursor ? '&cursor=' + encodeURIComponent(cursor) : '');
    const page: Page<T> = await get<Page<T>>(path + (path.includes('?') ? '&' : '?') + tail, signal);
    items.push(...page.items);
    cursor = page.next_cursor;
  } while (cursor && items.length < most);
  return items;
}

/** Posts a file; `onprogress(part)` hears how much went, 0 to 1. fetch() cannot tell that. */
export function upload<T>(path: string, file: Blob, onprogress: (part: number) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    const transfer = new XMLHttpRequest();
    transfer.open('POST', path);
    for (const [name, value] of Object.entries(credentials())) transfer.setRequestHeader(name, value);
    transfer.setRequestHeader('Content-Type', 'application/octet-stream');
    transfer.upload.onprogress = (event) => onprogress(event.lengthComputable ? event.loaded / event.total : 0);
    transfer.onload = () => {
      if (transfer.status === 401) keyWanted();
      if (transfer.status < 300) resolve(JSON.parse(transfer.responseText) as T);
      else reject(new Problem(transfer.status, parsed(transfer.responseText)));
    };
    transfer.onerror = () => reject(new Error(S.errors.uploadBroke));
    transfer.send(file);
  });
}

/** Bytes for the reader to keep. */
export function keep(data: BlobPart, name: string, type = 'application/octet-stream'): void {
  const url = URL.createObjectURL(new Blob([data], {type}));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}

/** A file of the server for the reader to keep, fetched with the key. */
export async function download(path: string, name: string): Promise<void> {
  keep(await (await request('GET', path)).blob(), name);
}

function pause(wait: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, wait);
    signal.addEventListener('abort', () => { clearTimeout(timer); resolve(); }, {once: true});
  });
}

/** Server-sent events of a job until `end`; a broken stream is taken up again behind the last event heard. */
export async function events(path: string, signal: AbortSignal, handle: (event: string, data: unknown) => void): Promise<void> {
  let last = '';
  for (let wait = 500; !signal.aborted; wait = Math.min(wait * 2, 10000)) {
    try {
      const response = await request('GET', path, {signal, headers: last ? {'Last-Event-ID': last} : {}});
      const reader = response.body!.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
      for (let rest = '';;) {
        const {value, done} = await reader.read();
        if (done) break;
        const blocks = (rest + value).split('\n\n');
        rest = blocks.pop() ?? '';
        for (const block of blocks) {
          const event = Object.fromEntries(block.split('\n').map((line) => line.split(/: (.*)/s, 2))) as Record<string, string>;
          if (event['id']) last = event['id'];
          if (!event['event']) continue;
          wait = 500;
          handle(event['event'], JSON.parse(event['data'] ?? 'null'));
          if (event['event'] === 'end') return;
        }
      }
    } catch (problem) {
      if (signal.aborted) return;
      if (problem instanceof Problem) throw problem;
    }
    await pause(wait, signal);
  }
}
