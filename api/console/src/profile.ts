// Times of a package's steps and the machine's limits, measured once and kept while the page is open: the table, the
// graph's colours and comparisons show the same numbers.
import {events, get, request, send} from './http';
import type {Job, ProfileStep, Roof, RunAnswer} from './types';

export const profiles = new Map<string, ProfileStep[]>();
export const roofs = new Map<string, Roof | null>();

const RUNS = 5;

/** Of a few runs on the same random inputs the one that took least in all: the others were disturbed. */
export async function profileOf(id: string, again = false): Promise<ProfileStep[]> {
  const known = profiles.get(id);
  if (known && !again) return known;
  let best: ProfileStep[] = [], least = Infinity;
  for (let i = 0; i < RUNS; ++i) {
    const response = await request('POST', '/v1/packages/' + id + '/run?fill_mode=random&seed=1&profile=1', {headers: {Accept: 'application/json'}});
    const {timing} = await response.json() as RunAnswer;
    const steps = timing.profile ?? [];
    const total = steps.reduce((sum, step) => sum + step.duration_us, 0);
    if (total < least) [best, least] = [steps, total];
  }
  profiles.set(id, best);
  return best;
}

/** Runs a benchmark job of the package to its end; without `again` the job that there is already will do. */
export async function benchmarkOf(id: string, again: boolean): Promise<Job> {
  const job = await send<Job>('POST', '/v1/jobs', {kind: 'benchmark', package: id, repeat: 50, number: 1, force: again});
  await events('/v1/jobs/' + job.id + '/events', new AbortController().signal, () => {});
  const end = await get<Job>('/v1/jobs/' + job.id);
  if (end.error) throw new Error(end.error.detail);
  return end;
}

/** What the machine can do at most in the package's vectors, as a benchmark job finds it; null where it was not measured. */
export async function roofOf(id: string): Promise<Roof | null> {
  if (!roofs.has(id)) roofs.set(id, (await benchmarkOf(id, false)).result?.roof ?? null);
  return roofs.get(id)!;
}
