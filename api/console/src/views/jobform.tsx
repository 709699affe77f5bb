// The form of a job: it knows the model's dims and asks the server what a target has.
import type {JSX} from 'preact';
import {useEffect, useState} from 'preact/hooks';
import {bytes, percentile, seconds} from '../format';
import {get, send} from '../http';
import {useGet} from '../load';
import {messageOf} from '../notify';
import {go, href} from '../router';
import {S} from '../strings';
import type {Job, Model, Page, ParsedTarget} from '../types';
import {Field, Form, typesOf} from '../ui';

const NATIVE = 'llvm -mcpu=native';

/** Names of the dims that the job must bind, in order. */
export function freeDims(model: Pick<Model, 'inputs'>): string[] {
  return [...new Set(model.inputs.flatMap((input) => input.shape.filter((dim): dim is string => typeof dim === 'string')))];
}

/** "1, 2, 8" and "32..640:32" as the server's buckets want them. */
export function bucketsOf(text: string): number[] | string | null {
  const trimmed = text.trim();
  if (!trimmed) return null;
  return /^[\d\s,]+$/.test(trimmed) ? trimmed.split(/[\s,]+/).filter(Boolean).map(Number) : trimmed;
}

const words = (text: FormDataEntryValue | null): string[] => String(text ?? '').split(/[\s,]+/).filter(Boolean);

export function jobRequest(model: Model, form: FormData): Record<string, unknown> {
  const request: Record<string, unknown> = {kind: form.get('kind'), model: model.id, target: form.get('target'), opt_level: Number(form.get('level'))};
  const bound = (dim: number | string) => {
    if (typeof dim !== 'string') return dim;
    return form.get('how-' + dim) === 'free' ? dim : Number(form.get('dim-' + dim));
  };
  const open = model.inputs.filter((input) => input.shape.some((dim) => typeof dim === 'string'));
  if (open.length > 0) request['input_shapes'] = Object.fromEntries(open.map((input) => [input.name, input.shape.map(bound)]));
  const buckets = freeDims(model).filter((dim) => form.get('how-' + dim) === 'free')
    .map((dim) => [dim, bucketsOf(String(form.get('buckets-' + dim) ?? ''))] as const).filter(([, list]) => list !== null);
  if (buckets.length > 0) request['shape_buckets'] = Object.fromEntries(buckets);
  const quantized = form.get('quantized');
  if (quantized) request['quantized'] = quantized;
  const layout = form.get('layout');
  if (layout) request['desired_layout'] = layout;
  const layoutOps = words(form.get('layout-ops'));
  if (layoutOps.length > 0) request['desired_layout_ops'] = layoutOps;
  const disabled = words(form.get('disabled'));
  if (disabled.length > 0) request['disabled_pass'] = disabled;
  const outputs = words(form.get('outputs'));
  if (outputs.length > 0) request['outputs'] = outputs;
  if (form.get('force')) request['force'] = true;
  if (request['kind'] === 'tune') {
    request['trials'] = Number(form.get('trials'));
    request['time_budget_s'] = Number(form.get('seconds'));
    request['tuner'] = form.get('tuner');
  }
  return request;
}

export function JobForm({model}: {model: Model}): JSX.Element {
  const [kind, setKind] = useState('compile');
  const [target, setTarget] = useState(NATIVE);
  const {data: targets} = useGet<Page<{name: string; target: string; description: string}>>('/v1/targets');
  const submit = async (form: FormData) => {
    const job = await send<Job>('POST', '/v1/jobs', jobRequest(model, form));
    go(href('jobs', job.id));
  };
  return (
    <Form id="job" title={S.job.form} submit={kind === 'tune' ? S.job.startTune : S.job.startCompile} work={submit}>
      <Field label={S.job.what} hint={kind === 'tune' ? S.job.tuneHint : S.job.compileHint}>
        <select name="kind" value={kind} onChange={(event) => setKind(event.currentTarget.value)}>
          <option value="compile">{S.job.compile}</option><option value="tune">{S.job.tune}</option></select></Field>
      <Field label={S.job.target} hint={S.job.targetHint}>
        <input name="target" value={target} list="targets" required onInput={(event) => setTarget(event.currentTarget.value)} /></Field>
      <datalist id="targets">{(targets?.items ?? []).map((item) => <option key={item.name} value={item.target}>{item.name}</option>)}</datalist>
      <TargetFacts target={target} />
      {freeDims(model).map((dim) => <DimField key={dim} dim={dim} model={model} />)}
      <Precision model={model} />
      <Field label={S.job.level} hint={S.job.levelHint}>
        <select name="level">{['0', '1', '2', '3', '4'].map((level) => <option key={level} value={level} selected={level === '3'}>{level}</option>)}</select></Field>
      {kind === 'tune' && <fieldset><legend>{S.job.search}</legend>
        <Field label={S.job.trials} hint={S.job.trialsHint}><input name="trials" type="number" min="1" value="256" /></Field>
        <Field label={S.job.seconds} hint={S.job.secondsHint}><input name="seconds" type="number" min="0" value="300" /></Field>
        <Field label={S.job.tuner} hint={S.job.tunerHint}>
          <select name="tuner">{['xgb', 'xgb-rank', 'ga', 'gridsearch', 'random'].map((name) => <option key={name} value={name}>{name}</option>)}</select></Field>
      </fieldset>}
      <details><summary>{S.job.more}</summary>
        <Field label={S.job.layout} hint={S.job.layoutHint}>
          <select name="layout"><option value="">{S.job.layoutAny}</option><option value="NCHW">NCHW</option><option value="NHWC">NHWC</option></select></Field>
        <Field label={S.job.layoutOps} hint={S.job.layoutOpsHint}><input name="layout-ops" /></Field>
        <Field label={S.job.outputs} hint={S.job.outputsHint}><input name="outputs" /></Field>
        <Field label={S.job.disabled} hint={S.job.disabledHint}><input name="disabled" /></Field>
        <label class="check"><input type="checkbox" name="force" /> {S.job.force}</label>
      </details>
      <Estimate model={model} kind={kind} />
    </Form>);
}

/** What the model computes in, and how integers are rounded where there is a choice: a file of TFLite says it exactly. */
function Precision({model}: {model: Model}): JSX.Element {
  const types = S.job.precisionOf(typesOf(model.inputs), typesOf(model.outputs));
  if (model.format !== 'tflite') return <p class="hint">{types}</p>;
  return (
    <Field label={S.job.precision} hint={types + ' ' + S.job.precisionHint}>
      <select name="quantized"><option value="">{S.job.roundedFast}</option><option value="exact">{S.job.roundedExactly}</option></select></Field>);
}

function DimField({dim, model}: {dim: string; model: Model}): JSX.Element {
  const [how, setHow] = useState('fixed');
  const where = model.inputs.filter((input) => input.shape.includes(dim)).map((input) => input.name).join(', ');
  return (
    <fieldset><legend>{S.job.dim(dim, where)}</legend>
      <Field label={S.job.dimHow}>
        <select name={'how-' + dim} value={how} onChange={(event) => setHow(event.currentTarget.value)}>
          <option value="fixed">{S.job.dimFixed}</option><option value="free">{S.job.dimFree}</option></select></Field>
      {how === 'fixed'
        ? <Field label={S.job.dimExtent}><input name={'dim-' + dim} type="number" min="1" value="1" required /></Field>
        : <Field label={S.job.buckets} hint={S.job.bucketsHint}><input name={'buckets-' + dim} placeholder="1, 2, 4, 8" /></Field>}
    </fieldset>);
}

/** What the server makes of the target while it is typed. */
function TargetFacts({target}: {target: string}): JSX.Element {
  const [answer, setAnswer] = useState<{facts: ParsedTarget | null; wrong: string}>({facts: null, wrong: ''});
  useEffect(() => {
    let left = false;
    const timer = setTimeout(async () => {
      try {
        const facts = await send<ParsedTarget>('POST', '/v1/targets/parse', {target});
        if (!left) setAnswer({facts, wrong: ''});
      } catch (error) {
        if (!left) setAnswer({facts: null, wrong: messageOf(error)});
      }
    }, 300);
    return () => {
      left = true;
      clearTimeout(timer);
    };
  }, [target]);
  const {facts, wrong} = answer;
  return (
    <div class="aside" aria-live="polite">
      {wrong && <p class="failed">{wrong}</p>}
      {facts && <p>{S.job.facts(facts.facts.vector_bits, facts.facts.vector_registers, facts.facts.num_cores,
        bytes(facts.facts.l1d_bytes), bytes(facts.facts.l2_bytes))}</p>}
      {facts && facts.features.length > 0 && <p>{S.job.features} <code>{facts.features.join(' ')}</code></p>}
      {facts?.warnings.map((warning) => <p key={warning} class="warned">{warning}</p>)}
    </div>);
}

/** How long such jobs of this model took here before. */
function Estimate({model, kind}: {model: Model; kind: string}): JSX.Element {
  const [words, setWords] = useState('');
  useEffect(() => {
    let left = false;
    const path = '/v1/jobs?limit=20&state=succeeded&kind=' + kind + '&model=' + encodeURIComponent(model.id);
    get<Page<Job>>(path).then(({items}) => {
      const spent = items.filter((job) => job.started_at && job.finished_at)
        .map((job) => (Date.parse(job.finished_at!) - Date.parse(job.started_at!)) / 1000);
      const middle = percentile(spent, 0.5);
      if (!left) setWords(middle === null ? S.job.noEstimate : S.job.estimate(seconds(middle), spent.length));
    }, () => setWords(''));
    return () => { left = true; };
  }, [model.id, kind]);
  return <p class="hint">{words}</p>;
}
