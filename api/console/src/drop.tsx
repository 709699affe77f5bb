// A file that is dropped anywhere: a model is imported; tensors and pictures go to the view that can take them.
import type {JSX} from 'preact';
import {useEffect, useState} from 'preact/hooks';
import {bytes, percent} from './format';
import {Problem, request, upload} from './http';
import {attempt, say} from './notify';
import {go, href} from './router';
import {S} from './strings';
import type {Model} from './types';
import {Action} from './ui';

type Taker = (file: File) => boolean;
const takers = new Set<Taker>();

/** The view that is open may take a file before it is imported as a model; it says so by returning true. */
export function useDrops(take: Taker): void {
  useEffect(() => {
    takers.add(take);
    return () => { takers.delete(take); };
  });
}

interface Going { name: string; size: number; part: number }
let going: Going | null = null;
const listeners = new Set<() => void>();

function setGoing(next: Going | null): void {
  going = next;
  for (const listener of listeners) listener();
}

export const nameOf = (file: string): string =>
  file.replace(/\.(onnx|tflite|keras|h5|pt2|pt|tmg|tar|zip)$/i, '').replace(/[^A-Za-z0-9._-]/g, '-').replace(/^[^A-Za-z0-9]+/, '').slice(0, 120) || 'model';

/** Imports a model and opens it. Where `name` was only a guess, a number behind it tells it from another of that name. */
export async function importModel(file: Blob, name: string, guessed: boolean): Promise<void> {
  for (let number = 1;; ++number) {
    const called = number === 1 ? name : name + '-' + number;
    setGoing({name: called, size: file.size, part: 0});
    try {
      const model = await upload<Model>('/v1/models?name=' + encodeURIComponent(called), file,
        (part) => setGoing({name: called, size: file.size, part}));
      say(S.models.imported(model.name, Object.keys(model.ops).length));
      go(href('models', model.id));
      return;
    } catch (error) {
      if (!guessed || number > 9 || !(error instanceof Problem) || error.code !== 'name_taken') throw error;
    } finally {
      setGoing(null);
    }
  }
}

/** The model that the program brings along: handwritten digits. */
export async function importSample(): Promise<void> {
  const file = await (await request('GET', '/console/sample.onnx')).blob();
  await importModel(file, 'digits', true);
}

/** The first thing to do on an empty server, wherever its reader is. */
export const SampleButton = (): JSX.Element => <Action kind="primary" work={importSample}>{S.models.sample}</Action>;

function taken(file: File): void {
  for (const take of takers) if (take(file)) return;
  void attempt(() => {
    if (/\.(onnx|tflite|keras|h5|pt2|pt|tmg|tar|zip)$/i.test(file.name) || !/\.(png|jpe?g|npz|npy|txt|json|csv)$/i.test(file.name))
      return importModel(file, nameOf(file.name), true);
    throw new Error(S.drop.notHere(file.name));
  });
}

export function DropZone(): JSX.Element | null {
  const [over, setOver] = useState(false);
  const [, draw] = useState(0);
  useEffect(() => {
    const listener = () => draw((n) => n + 1);
    listeners.add(listener);
    return () => { listeners.delete(listener); };
  }, []);
  useEffect(() => {
    const holdsFiles = (event: DragEvent) => [...(event.dataTransfer?.types ?? [])].includes('Files');
    const dragged = (event: DragEvent) => {
      if (!holdsFiles(event)) return;
      event.preventDefault();
      setOver(true);
    };
    const left = (event: DragEvent) => { if (event.relatedTarget === null) setOver(false); };
    const dropped = (event: DragEvent) => {
      if (!holdsFiles(event)) return;
      event.preventDefault();
      setOver(false);
      const file = event.dataTransfer?.files[0];
      if (file) taken(file);
    };
    window.addEventListener('dragover', dragged);
    window.addEventListener('dragleave', left);
    window.addEventListener('drop', dropped);
    return () => {
      window.removeEventListener('dragover', dragged);
      window.removeEventListener('dragleave', left);
      window.removeEventListener('drop', dropped);
    };
  }, []);
  if (going) {
    const {name, size, part} = going;
    return (
      <div class="toast" role="status">
        <p>{part < 1 ? S.drop.uploading(name, bytes(size)) : S.drop.reading(name)}</p>
        <progress max={1} value={part < 1 ? part : undefined} aria-label={S.drop.uploading(name, percent(part))} />
      </div>);
  }
  return over ? <div class="drop" aria-hidden="true"><p>{S.drop.here}</p></div> : null;
}
