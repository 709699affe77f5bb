// What a report job has found: a row a configuration.
import type {JSX} from 'preact';
import {accuracyText, bytes, count, ms} from '../format';
import {download} from '../http';
import {useGet} from '../load';
import {S} from '../strings';
import type {Job, Report, ReportRow} from '../types';
import {Action, Bar, Loading, Table} from '../ui';

export function ReportView({job}: {job: Job}): JSX.Element {
  const over = job.finished_at !== null;
  const path = '/v1/jobs/' + job.id + '/report';
  // Another address at the end, so that the last rows are asked for.
  const {data} = useGet<Report>(path + (over ? '?format=json' : ''), over ? 0 : 3000);
  if (!data) return <Loading />;
  const slowest = Math.max(...data.configurations.map((row) => row.run?.times.median_ms ?? 0));
  return (
    <>
      <Table label={S.report.title} rows={data.configurations} keyOf={(row) => row.name + row.target} empty={S.report.none} columns={[
        {title: S.report.configuration, cell: (row) => <>{row.name}{row.error && <div class="failed">{row.error.message}</div>}</>},
        {title: S.columns.median, numeric: true, cell: (row) => ms(row.run?.times.median_ms)},
        {title: '', cell: (row) => (row.run ? <Bar part={row.run.times.median_ms / slowest} /> : null)},
        {title: 'p95', numeric: true, cell: (row) => ms(row.run?.times.p95_ms)},
        {title: S.report.rate, numeric: true, cell: (row) => (row.run ? count(Math.round(row.run.samples_per_s)) : '—')},
        {title: S.report.accuracy, numeric: true, cell: (row) => accuracyText(row.quality?.accuracy)},
        {title: S.columns.package, numeric: true, cell: (row) => (row.package ? bytes(row.package.archive_bytes) : '—')},
      ]} />
      {data.configurations.map(Remarks)}
      {data.configurations.length > 0 && <p class="actions">
        <Action kind="quiet" work={() => download(path + '?format=html', 'report.html')}>{S.report.save}</Action></p>}
    </>);
}

function Remarks(row: ReportRow): JSX.Element | null {
  if (row.remarks.length === 0) return null;
  return <details key={row.name + row.target}><summary>{S.report.remarks(row.name)}</summary><ul>{row.remarks.map((line) => <li key={line}>{line}</li>)}</ul></details>;
}
