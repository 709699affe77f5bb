// The form that puts a package into service.
import type {JSX} from 'preact';
import {useState} from 'preact/hooks';
import {get, Problem, request as fetched, send} from '../http';
import {attempt} from '../notify';
import {go, href} from '../router';
import {S} from '../strings';
import type {Deployment, Package} from '../types';
import {Field, Form} from '../ui';
import {PlacementFields, placementOf} from './placement';

const numbers = (text: FormDataEntryValue | null): number[] => String(text ?? '').split(/[\s,]+/).filter(Boolean).map(Number);

export function deploymentSpec(id: string, form: FormData): Record<string, unknown> {
  const spec: Record<string, unknown> = {package: id, version: form.get('version'), max_batch: Number(form.get('max_batch')),
    keep_versions: Number(form.get('keep_versions')), instances: Number(form.get('instances')), isolation: form.get('isolation'), placement: placementOf(form)};
  if (!form.get('pictures')) return spec;
  const labels = String(form.get('labels')).split('\n').map((line) => line.trim()).filter(Boolean);
  return {...spec, ...(labels.length > 0 ? {labels} : {}), output: form.get('output'),
    preprocess: {resize: Number(form.get('resize')), crop: Number(form.get('crop')), mean: numbers(form.get('mean')),
      std: numbers(form.get('std')), layout: form.get('layout'), color: form.get('color')}};
}

/** The number behind the versions that a name has; 1 for a name that is free. */
async function nextVersion(name: string): Promise<number> {
  try {
    const {versions} = await get<Deployment>('/v1/deployments/' + encodeURIComponent(name));
    return Math.max(0, ...Object.keys(versions).map(Number)) + 1;
  } catch (error) {
    if (error instanceof Problem && error.status === 404) return 1;
    throw error;
  }
}

export function DeployForm({item}: {item: Package}): JSX.Element {
  const [takes, setTakes] = useState(false);
  const [version, setVersion] = useState('1');
  const input = item.inputs[0];
  const submit = async (form: FormData) => {
    const name = String(form.get('name'));
    await send('PUT', '/v1/deployments/' + encodeURIComponent(name), deploymentSpec(item.id, form));
    go(href('deployments', name));
  };
  return (
    <Form id="deploy" title={S.deploy.title} submit={S.deploy.submit} work={submit}>
      <Field label={S.deploy.name} hint={S.deploy.nameHint}>
        <input name="name" required placeholder="digits" pattern="[A-Za-z0-9][A-Za-z0-9._\-]{0,127}"
          onChange={(event) => { const name = event.currentTarget.value; void attempt(async () => setVersion(String(await nextVersion(name)))); }} /></Field>
      <Field label={S.deploy.version}><input name="version" type="number" min="1" value={version} onInput={(event) => setVersion(event.currentTarget.value)} /></Field>
      <Field label={S.deploy.batch} hint={S.deploy.batchHint}><input name="max_batch" type="number" min="1" value="1" /></Field>
      <details><summary>{S.job.more}</summary>
        <Field label={S.deploy.keep} hint={S.deploy.keepHint}><input name="keep_versions" type="number" min="1" value="2" /></Field>
        <Field label={S.deploy.instances} hint={S.deploy.instancesHint}><input name="instances" type="number" min="1" max="64" value="1" /></Field>
        <Field label={S.deploy.isolation} hint={S.deploy.isolationHint}>
          <select name="isolation"><option value="none">{S.deploy.isolationNone}</option><option value="process">{S.deploy.isolationProcess}</option></select></Field>
        <PlacementFields placed={{}} />
      </details>
      <label class="check"><input type="checkbox" name="pictures" checked={takes} onChange={(event) => setTakes(event.currentTarget.checked)} /> {S.deploy.pictures}</label>
      {takes && <PictureFields shape={input?.shape ?? []} />}
    </Form>);
}

/** What an input of four axes says about its pictures: side and number of channels, and where the channels are. */
function picturesOf(shape: (number | string)[]): {side: number; gray: boolean; layout: string} {
  const channelsLast = shape.length === 4 && [1, 3].includes(Number(shape[3])) && ![1, 3].includes(Number(shape[1]));
  const side = Number(shape[2]);
  return {side: shape.length === 4 && side > 0 ? side : 224, gray: shape.length === 4 && Number(shape[channelsLast ? 3 : 1]) === 1,
    layout: channelsLast ? 'NHWC' : 'NCHW'};
}

function PictureFields({shape}: {shape: (number | string)[]}): JSX.Element {
  const {side, gray, layout} = picturesOf(shape);
  const [labels, setLabels] = useState('');
  const load = (file: File | undefined) => { if (file) void attempt(async () => setLabels(await file.text())); };
  const sample = () => void attempt(async () => setLabels(await (await fetched('GET', '/console/sample.labels.txt')).text()));
  return (
    <fieldset><legend>{S.deploy.fromPicture}</legend>
      <Field label={S.deploy.resize}><input name="resize" type="number" min="1" value={side} /></Field>
      <Field label={S.deploy.crop}><input name="crop" type="number" min="1" value={side} /></Field>
      <Field label={S.deploy.mean} hint={S.deploy.meanHint}><input name="mean" value={gray ? '0' : '0.485, 0.456, 0.406'} /></Field>
      <Field label={S.deploy.std}><input name="std" value={gray ? '1' : '0.229, 0.224, 0.225'} /></Field>
      <Field label={S.job.layout}><select name="layout">{['NCHW', 'NHWC'].map((name) => <option key={name} selected={name === layout}>{name}</option>)}</select></Field>
      <Field label={S.deploy.color}><select name="color">{(['rgb', 'bgr', 'gray'] as const).map((name) => <option key={name} value={name} selected={(name === 'gray') === gray && (gray || name === 'rgb')}>{S.deploy.colors[name]}</option>)}</select></Field>
      <Field label={S.deploy.output}><select name="output"><option value="logits">logits</option><option value="probabilities">{S.deploy.probabilities}</option></select></Field>
      <Field label={S.deploy.labels} hint={S.deploy.labelsHint}><textarea name="labels" rows={4} value={labels} onInput={(event) => setLabels(event.currentTarget.value)} /></Field>
      <Field label={S.deploy.labelsFile}><input type="file" accept=".txt,.csv" onChange={(event) => load(event.currentTarget.files?.[0])} /></Field>
      {gray && side === 28 && <p class="actions"><button type="button" class="quiet" onClick={sample}>{S.deploy.sampleLabels}</button></p>}
    </fieldset>);
}
