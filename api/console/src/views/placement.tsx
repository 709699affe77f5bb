// Where a version is loaded, how requests are shared among versions, and what each replica has.
import type {JSX} from 'preact';
import {useState} from 'preact/hooks';
import {send} from '../http';
import {useGet} from '../load';
import {S} from '../strings';
import type {Deployment, Placement} from '../types';
import {Field, Form, Loading, State, Table} from '../ui';

const MODES = ['all', 'demand', 'labels'] as const;

/** The fields of a form, and what they say, read with placementOf(). */
export function PlacementFields({placed}: {placed: Placement}): JSX.Element {
  const [mode, setMode] = useState(placed.mode ?? 'all');
  return (
    <>
      <Field label={S.place.where} hint={S.place.hints[mode]}>
        <select name="place" value={mode} onChange={(event) => setMode(event.currentTarget.value as Placement['mode'] & string)}>
          {MODES.map((name) => <option key={name} value={name}>{S.place.modes[name]}</option>)}</select></Field>
      {mode === 'demand' && <Field label={S.place.idle} hint={S.place.idleHint}>
        <input name="idle_s" type="number" min="1" max="31536000" required defaultValue={String(placed.idle_s ?? 600)} /></Field>}
      {mode === 'labels' && <Field label={S.place.labels} hint={S.place.labelsHint}>
        <input name="place_labels" required defaultValue={(placed.labels ?? []).join(', ')} placeholder="zone=a" /></Field>}
    </>);
}

export function placementOf(form: FormData): Placement {
  const mode = String(form.get('place') ?? 'all') as Placement['mode'] & string;
  if (mode === 'demand') return {mode, idle_s: Number(form.get('idle_s'))};
  if (mode === 'labels') return {mode, labels: String(form.get('place_labels')).split(',').map((label) => label.trim()).filter(Boolean)};
  return {mode};
}

/** For the version that serves: it is put again with another placement, and with nothing else changed. */
export function PlacementForm({item, path, reload}: {item: Deployment; path: string; reload: () => void}): JSX.Element | null {
  const version = item.default_version;
  const spec = useGet<Record<string, unknown> & {placement?: Placement}>(path + '/versions/' + (version ?? ''));
  if (!version) return null;
  if (!spec.data) return <Loading />;
  const placed = spec.data;
  const submit = async (form: FormData) => {
    // The other versions stay, and keep their parts of the requests.
    const keep = Math.max(Number(placed['keep_versions'] ?? 1), Object.keys(item.versions).length);
    await send('PUT', path, {...placed, keep_versions: keep, placement: placementOf(form), ...(item.weights ? {weights: item.weights} : {})});
    spec.reload();
    reload();
  };
  return (
    <Form id="placement" title={S.place.title(version)} submit={S.place.submit} work={submit}>
      <PlacementFields key={JSON.stringify(placed.placement ?? {})} placed={placed.placement ?? {}} />
    </Form>);
}

export function WeightsForm({item, path, reload}: {item: Deployment; path: string; reload: () => void}): JSX.Element | null {
  const versions = Object.keys(item.versions).sort((a, b) => Number(a) - Number(b));
  if (versions.length < 2) return null;
  const submit = async (form: FormData) => {
    await send('PUT', path + '/weights', {weights: Object.fromEntries(versions.map((version) => [version, Number(form.get('weight-' + version))]))});
    reload();
  };
  const weightOf = (version: string) => (item.weights ? item.weights[version] ?? 0 : version === item.default_version ? 1 : 0);
  return (
    <Form id="weights" title={S.place.share} submit={S.place.shareSubmit} work={submit}>
      <p class="hint">{S.place.shareHint}</p>
      {versions.map((version) => <Field key={version} label={S.place.version(version)}>
        <input name={'weight-' + version} type="number" min="0" max="1000" required defaultValue={String(weightOf(version))} /></Field>)}
    </Form>);
}

export function Replicas({item}: {item: Deployment}): JSX.Element | null {
  const rows = Object.entries(item.replicas ?? {}).sort(([a], [b]) => a.localeCompare(b));
  if (rows.length === 0) return null;
  return (
    <>
      <h2>{S.place.replicas}</h2>
      <Table label={S.place.replicas} rows={rows} keyOf={([name]) => name} columns={[
        {title: S.columns.name, cell: ([name]) => name},
        {title: S.columns.state, cell: ([, {state, reason}]) => <><State state={state} /> {reason}</>},
      ]} />
    </>);
}
