// What is told to the reader whatever view is shown: errors, and short words for screen readers.
import {Problem} from './http';

export interface Notice { error: unknown }
type Listener = () => void;

let notice: Notice | null = null;
let spoken = '';
const listeners = new Set<Listener>();

function tell(): void {
  for (const listener of listeners) listener();
}

export function subscribe(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export const currentNotice = (): Notice | null => notice;
export const currentWords = (): string => spoken;

export function showError(error: unknown): void {
  notice = {error};
  tell();
}

export function clearError(): void {
  if (!notice) return;
  notice = null;
  tell();
}

/** For screen readers: what changed without the focus moving. */
export function say(words: string): void {
  spoken = words;
  tell();
}

/** Runs `work`; what it throws is shown above the view. Returns whether it succeeded. */
export async function attempt(work: () => Promise<unknown> | unknown): Promise<boolean> {
  try {
    await work();
    clearError();
    return true;
  } catch (error) {
    if (!(error instanceof DOMException && error.name === 'AbortError')) showError(error);
    return false;
  }
}

export const messageOf = (error: unknown): string =>
  error instanceof Problem || error instanceof Error ? error.message : String(error);
