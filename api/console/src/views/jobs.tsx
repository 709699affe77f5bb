// Jobs: what the server was asked to compute.
import type {JSX} from 'preact';
import {SampleButton} from '../drop';
import {ms, seconds} from '../format';
import {useRows} from '../load';
import {href, setQuery, usePlace} from '../router';
import {S} from '../strings';
import type {Job, Progress} from '../types';
import {cursorOf, Empty, Id, Loading, Pager, State, Table, Time} from '../ui';

export function progressText(progress: Progress | null): string {
  if (!progress?.stage) return '';
  const count = (progress.total ?? 0) > 1 ? ' ' + progress.done + '/' + progress.total : '';
  const best = progress.best_ms ? ', ' + ms(progress.best_ms) : '';
  const left = typeof progress.eta_s === 'number' ? ', ' + S.job.left(seconds(Math.ceil(progress.eta_s))) : '';
  return progress.stage + count + best + left;
}

export function spent(job: Job): string {
  if (!job.started_at) return '—';
  const end = job.finished_at ? Date.parse(job.finished_at) : Date.now();
  return seconds(Math.max(0, end - Date.parse(job.started_at)) / 1000);
}

function outcome(job: Job): JSX.Element | string {
  if (job.error) return <span class="failed">{job.error.detail.slice(0, 160)}</span>;
  if (job.kind === 'benchmark' && job.result) return ms(job.result.median_ms);
  return job.result?.package ? <a href={href('packages', job.result.package)}><Id id={job.result.package} /></a> : progressText(job.progress);
}

export function Jobs(): JSX.Element {
  const {query} = usePlace();
  const filter = ['state', 'kind'].map((name) => (query.get(name) ? '&' + name + '=' + encodeURIComponent(query.get(name)!) : '')).join('');
  const list = useRows<Job>('/v1/jobs?' + cursorOf(query) + filter, (job) => job.id, 3000);
  const choice = (name: string, all: string, values: string[]) => (
    <label class="inline"><span>{all}</span><select value={query.get(name) ?? ''} onChange={(event) => setQuery({[name]: event.currentTarget.value, cursor: null})}>
      <option value="">{S.list.any}</option>{values.map((value) => <option key={value} value={value}>{S.states[value] ?? value}</option>)}</select></label>);
  return (
    <>
      <h1>{S.nav.jobs}</h1>
      <div class="filters">{choice('kind', S.columns.kind, ['compile', 'tune', 'benchmark', 'verify', 'report'])}
        {choice('state', S.columns.state, ['queued', 'running', 'succeeded', 'failed', 'cancelled'])}</div>
      {!list.rows ? <Loading /> : list.rows.length === 0 && !filter
        ? <Empty title={S.job.none}><p>{S.job.noneWhy}</p><p><SampleButton /> <a class="button" href={href('models')}>{S.nav.models}</a></p></Empty>
        : <Table label={S.nav.jobs} rows={list.rows} keyOf={(job) => job.id} empty={S.list.nothing} columns={[
          {title: S.columns.job, cell: (job) => <a href={href('jobs', job.id)}><code>{job.id.slice(0, 13)}</code></a>},
          {title: S.columns.kind, cell: (job) => job.kind},
          {title: S.columns.state, cell: (job) => <State state={job.state} />},
          {title: S.columns.created, cell: (job) => <Time at={job.created_at} />},
          {title: S.columns.spent, numeric: true, cell: spent},
          {title: S.columns.result, cell: outcome},
        ]} />}
      <Pager next={list.next} changed={list.changed} show={list.show} />
    </>);
}
