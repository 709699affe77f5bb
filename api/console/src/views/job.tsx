// One job, live: the view follows its events until its end.
import type {JSX} from 'preact';
import {useEffect, useRef, useState} from 'preact/hooks';
import {ErrorDetails} from '../app';
import {LineChart} from '../charts';
import {ms, percent, seconds} from '../format';
import {events, get, send, text} from '../http';
import {attempt, say} from '../notify';
import {bound, Roofline} from '../roofline';
import {href} from '../router';
import {S} from '../strings';
import type {Job, JobError, Progress, Roof, Task} from '../types';
import {Action, Facts, Id, Loading, State, Table, Time} from '../ui';
import {progressText, spent} from './jobs';
import {ReportView} from './report';

interface Trial { task: string; name: string; trial: number; ms: number | null; error: string }
interface Live { progress: Progress; stages: string[]; tasks: Map<string, Task>; best: [number, number][]; trials: Map<string, Trial[]> }

const isOver = (job: Job): boolean => ['succeeded', 'failed', 'cancelled'].includes(job.state);

/** Of the algorithms of a layer one is enough for the model's time. */
function isMeasured(task: Task, tasks: Map<string, Task>): boolean {
  const stands = [...tasks.values()].filter((other) => other === task || (task.layer && other.layer === task.layer));
  return stands.some((one) => typeof one.best_ms === 'number');
}

function heard(live: Live, event: string, data: unknown): void {
  if (event === 'progress') {
    const progress = data as Progress;
    live.progress = progress;
    if (progress.stage && live.stages.at(-1) !== progress.stage) live.stages.push(progress.stage);
    for (const task of progress.tasks ?? []) live.tasks.set(task.task, task);
    // The estimate is whole when every kernel has been measured once.
    const whole = [...live.tasks.values()].every((task) => isMeasured(task, live.tasks));
    if (whole && progress.best_ms) live.best.push([progress.done ?? 0, progress.best_ms]);
  } else if (event === 'trial') {
    const trial = data as Trial;
    const all = live.trials.get(trial.task) ?? [];
    all.push(trial);
    live.trials.set(trial.task, all);
  }
}

/** The job and what its events told so far. Events come by hundreds: they are shown once a frame. */
function useJob(id: string): {job: Job | null; live: Live; reload: () => void} {
  const [job, setJob] = useState<Job | null>(null);
  const [turn, setTurn] = useState(0);
  const [, draw] = useState(0);
  const live = useRef<Live>({progress: {}, stages: [], tasks: new Map(), best: [], trials: new Map()});
  useEffect(() => {
    const leave = new AbortController();
    let frame = 0;
    const follow = async () => {
      const now = await get<Job>('/v1/jobs/' + id, leave.signal);
      live.current = {progress: now.progress ?? {}, stages: [], tasks: new Map(), best: [], trials: new Map()};
      setJob(now);
      await events('/v1/jobs/' + id + '/events', leave.signal, (event, data) => {
        if (event === 'state') setJob((before) => before && {...before, ...(data as Partial<Job>)});
        heard(live.current, event, data);
        if (!frame) frame = requestAnimationFrame(() => { frame = 0; draw((n) => n + 1); });
      });
      if (leave.signal.aborted) return;
      const end = await get<Job>('/v1/jobs/' + id, leave.signal);
      setJob(end);
      say(S.job.ended(S.states[end.state] ?? end.state));
    };
    void attempt(follow);
    return () => {
      leave.abort();
      cancelAnimationFrame(frame);
    };
  }, [id, turn]);
  return {job, live: live.current, reload: () => setTurn((n) => n + 1)};
}

export function JobView({id}: {id: string}): JSX.Element {
  const {job, live, reload} = useJob(id);
  if (!job) return <Loading />;
  const facts = job.resolved?.compile ?? job.resolved;
  return (
    <>
      <h1>{S.job.kinds[job.kind]} <small><code>{job.id}</code></small></h1>
      <p class="actions"><State state={job.state} />
        {!isOver(job) && <Action work={() => send('POST', '/v1/jobs/' + id + '/cancel')}>{S.job.cancel}</Action>}
        {['failed', 'cancelled'].includes(job.state) && <Action work={async () => { await send('POST', '/v1/jobs/' + id + '/retry'); reload(); }}>{S.job.again}</Action>}
        {job.result?.package && <a class="button primary" href={href('packages', job.result.package)}>{S.job.open}</a>}
      </p>
      <Facts rows={[
        ...(facts?.model ? [[S.columns.model, <a href={href('models', facts.model)}><Id id={facts.model} /></a>] as [string, JSX.Element]] : []),
        ...(facts?.target ? [[S.columns.target, <code>{facts.target}</code>] as [string, JSX.Element]] : []),
        [S.columns.created, <Time at={job.created_at} />], [S.columns.spent, spent(job)],
        ...(job.attempt > 1 ? [[S.columns.attempt, job.attempt] as [string, number]] : []),
      ]} />
      {!isOver(job) && <Running live={live} />}
      {job.error && <Failed error={job.error} />}
      {job.kind === 'report' ? <ReportView job={job} /> : <Outcome job={job} />}
      <Curve live={live} />
      {job.result?.roof && <Roofline roof={job.result.roof} tasks={job.result.tasks ?? []} />}
      <Tasks tasks={job.result?.tasks ?? [...live.tasks.values()]} trials={live.trials} roof={job.result?.roof ?? null} />
      <Log id={id} />
    </>);
}

function Running({live}: {live: Live}): JSX.Element {
  const {progress, stages} = live;
  return (
    <div class="running">
      <ol class="phases">{stages.map((stage, i) => <li key={i} class={i === stages.length - 1 ? 'now' : 'done'}>{stage}</li>)}</ol>
      <progress max={Math.max(progress.total ?? 1, 1)} value={progress.done ?? 0} aria-label={S.job.progress} />
      <p>{progressText(progress) || S.job.waiting}</p>
    </div>);
}

function Failed({error}: {error: JobError}): JSX.Element {
  return <div class="panel bad"><h2>{S.job.failed}</h2><p class="failed">{error.detail}</p>
    <ErrorDetails error={{errors: error.errors ?? [], model: error.model ?? null}} /></div>;
}

function Outcome({job}: {job: Job}): JSX.Element | null {
  const {result} = job;
  if (!result) return null;
  const times = Object.entries(result.times_ms ?? {});
  return (
    <>
      {typeof result.speedup === 'number' && <p>{S.job.speedup(result.speedup.toFixed(2), ms(result.before?.median_ms), ms(result.after?.median_ms))}
        {result.tuned ? '' : ' ' + S.job.notFaster}</p>}
      {result.left_out && result.left_out.length > 0 && <><p>{S.job.leftOut}</p><ul>{result.left_out.map((part) =>
        <li key={part.key}>{part.name} ({ms(part.untuned_ms)} → {ms(part.tuned_ms)})</li>)}</ul></>}
      {result.warnings?.map((warning) => <p key={warning} class="warned">{warning}</p>)}
      {job.kind === 'benchmark' && <Facts rows={[[S.columns.median, ms(result.median_ms)], [S.columns.least, ms(result.min_ms)],
        [S.columns.most, ms(result.max_ms)], [S.columns.package, <a href={href('packages', result.package!)}><Id id={result.package!} /></a>]]} />}
      {job.kind === 'verify' && Array.isArray(result.outputs) && <Facts rows={[...result.outputs.map((output): [string, string] =>
        [output.name, S.job.apart(output.max_abs_error, output.largest)]),
        [S.columns.package, <a href={href('packages', result.package!)}><Id id={result.package!} /></a>]]} />}
      {times.length > 0 && <p class="hint">{S.job.phases} {times.map(([name, spentMs]) => name + ' ' + seconds(spentMs / 1000)).join(' · ')}</p>}
    </>);
}

/** The model's estimated time over the trials; at the end the best of each kernel are measured again. */
function Curve({live}: {live: Live}): JSX.Element | null {
  const {best} = live;
  if (best.length < 2) return null;
  const first = best[0]!, last = best.at(-1)!;
  const words = S.job.curve(ms(first[1]), ms(last[1]), last[0]);
  return <figure id="curve"><LineChart lines={[{points: best}]} label={words} unit={' ' + S.job.trialsUnit} level={{at: first[1], name: S.job.default}} />
    <figcaption>{words}</figcaption></figure>;
}

function failures(task: Task): string {
  return Object.entries(task.failures ?? {}).map(([cause, found]) => cause + ' × ' + (typeof found === 'number' ? found : found.count)).join(', ');
}

/** Of what a kernel of its intensity could do. */
function ofRoof({flops, bytes, gflops}: Task, roof: Roof): string {
  return flops && bytes && gflops ? percent(gflops / bound(roof, flops / bytes)) : '—';
}

function Tasks({tasks, trials, roof}: {tasks: Task[]; trials: Map<string, Trial[]>; roof: Roof | null}): JSX.Element | null {
  const [chosen, setChosen] = useState('');
  if (tasks.length === 0) return null;
  const task = tasks.find((one) => one.task === chosen);
  return (
    <>
      <h2>{S.job.kernels}</h2>
      <Table label={S.job.kernels} rows={tasks} keyOf={(one) => one.task} columns={[
        {title: S.columns.kernel, cell: (one) => <button type="button" class="link" aria-pressed={one.task === chosen}
          onClick={() => setChosen(one.task === chosen ? '' : one.task)}>{one.name}</button>},
        {title: S.columns.algorithm, cell: (one) => one.algorithm || '—'},
        {title: S.columns.calls, numeric: true, cell: (one) => one.calls},
        {title: S.columns.trials, numeric: true, cell: (one) => (one.reused ? S.job.reused : one.trials)},
        {title: S.columns.default, numeric: true, cell: (one) => ms(one.default_ms)},
        {title: S.columns.best, numeric: true, cell: (one) => ms(one.best_ms)},
        {title: S.columns.gflops, numeric: true, cell: (one) => (one.gflops ? one.gflops.toFixed(1) : '—')},
        ...(roof ? [{title: S.roofline.part, numeric: true, cell: (one: Task) => ofRoof(one, roof)}] : []),
        {title: S.columns.failed, cell: failures},
      ]} />
      {task && <TaskCurve task={task} trials={trials.get(task.task) ?? []} />}
    </>);
}

/** Each trial of one kernel, and the best so far, with the default schedule as a line. */
function TaskCurve({task, trials}: {task: Task; trials: Trial[]}): JSX.Element {
  const points = trials.filter((trial) => !trial.error && trial.ms).map((trial, i): [number, number] => [i + 1, trial.ms!]);
  if (points.length < 1) return <p class="nothing">{S.job.noTrials}</p>;
  let least = Infinity;
  const best = points.map(([at, time]): [number, number] => [at, least = Math.min(least, time)]);
  const words = S.job.kernelCurve(task.name, ms(task.default_ms), ms(least), points.length);
  return <figure><LineChart lines={[{points, tone: 'faint'}, {points: best}]} label={words} unit={' ' + S.job.trialsUnit}
    {...(task.default_ms ? {level: {at: task.default_ms, name: S.job.default}} : {})} /><figcaption>{words}</figcaption></figure>;
}

function Log({id}: {id: string}): JSX.Element {
  const [log, setLog] = useState('');
  const toggled = (event: JSX.TargetedToggleEvent<HTMLDetailsElement>) => {
    if (event.currentTarget.open) void attempt(async () => setLog(await text('/v1/jobs/' + id + '/log')));
  };
  return <details onToggle={toggled}><summary>{S.job.log}</summary><pre id="log" tabIndex={0} aria-label={S.job.log}>{log}</pre></details>;
}
