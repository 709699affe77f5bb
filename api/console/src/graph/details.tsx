// What a node is: its values and attributes, the kernel that computes it with schedule, loops and machine code, its time.
import type {JSX} from 'preact';
import {useEffect, useState} from 'preact/hooks';
import {ms, percent} from '../format';
import {text} from '../http';
import {attempt} from '../notify';
import {bound} from '../roofline';
import {href} from '../router';
import {S} from '../strings';
import type {Kernel, ModelGraph, Package, ProfileStep, Roof} from '../types';
import {sectionOf} from '../views/package';
import type {Net} from './net';
import {partOfPeak, stepOf} from './viewer';

interface Props {
  shown: {graph: ModelGraph; net: Net; node: number} | null; item: Package | null; steps: ProfileStep[] | null; roof: Roof | null; choose: (node: number) => void;
}

/** The kernel that has the most of a node's origins. */
export function kernelOf(origins: readonly string[], kernels: readonly Kernel[]): Kernel | null {
  let best: Kernel | null = null, most = 0;
  for (const kernel of kernels) {
    const shared = kernel.origins.filter((origin) => origins.includes(origin)).length;
    if (shared > most || (shared === most && shared > 0 && best && kernel.origins.length < best.origins.length)) [best, most] = [kernel, shared];
  }
  return best;
}

export function Details({shown, item, steps, roof, choose}: Props): JSX.Element {
  const node = shown && shown.node >= 0 ? shown.net.nodes[shown.node]! : null;
  if (!shown || !node) return <aside class="side" aria-label={S.graph.details}><h2>{S.graph.details}</h2><p class="hint">{S.graph.pick}</p></aside>;
  const {graph, net} = shown;
  const inputs = graph.inputs.length;
  const source = graph.nodes[shown.node - inputs];
  const producer = (value: string) => net.nodes.findIndex((other) => other.outputs.includes(value));
  const value = (name: string) => {
    const type = graph.values[name]?.type ?? '', from = producer(name);
    return <li key={name}>{from >= 0 && from !== shown.node ? <button type="button" class="link" onClick={() => choose(from)}>{name}</button> : name} <code>{type}</code>
      {graph.values[name]?.constant ? ' ' + S.graph.constant : ''}</li>;
  };
  const kernel = item ? kernelOf(node.origins, item.metadata.kernels) : null;
  return (
    <aside class="side" id="details" aria-label={S.graph.details}>
      <h2>{node.fused.length > 0 ? node.fused.join(' + ') : node.op}</h2>
      <p class="hint">{node.name}</p>
      {source && <><h3>{S.graph.inputs}</h3><ul>{source.inputs.filter(Boolean).map(value)}</ul>
        <h3>{S.graph.outputs}</h3><ul>{source.outputs.map(value)}</ul></>}
      {!source && <p><code>{node.type}</code></p>}
      {source?.attributes && Object.keys(source.attributes).length > 0 && <><h3>{S.graph.attributes}</h3>
        <ul>{Object.entries(source.attributes).map(([name, text]) => <li key={name}>{name} <code>{text}</code></li>)}</ul></>}
      {source?.region && <><h3>{S.graph.fused}</h3><ul>{source.region.nodes.map((inner, i) =>
        <li key={i}>{inner.op} <code>{source.region!.values[inner.outputs[0] ?? '']?.type ?? ''}</code></li>)}</ul></>}
      {node.origins.length > 0 && <><h3>{S.graph.origins}</h3><ul>{node.origins.map((origin) => <li key={origin}>{origin}</li>)}</ul></>}
      {kernel && item && <KernelPart kernel={kernel} item={item} />}
      {steps && <TimePart node={node} steps={steps} roof={roof} />}
    </aside>);
}

function TimePart({node, steps, roof}: {node: {origins: string[]}; steps: ProfileStep[]; roof: Roof | null}): JSX.Element | null {
  const step = steps[stepOf(node, steps)];
  if (!step) return null;
  const whole = steps.reduce((sum, one) => sum + one.duration_us, 0) || 1;
  return <><h3>{S.graph.time}</h3><p>{ms(step.duration_us / 1000)}, {percent(step.duration_us / whole)} {S.graph.share}
    {step.flops ? ', ' + (step.flops / step.duration_us / 1e3).toFixed(1) + ' GFLOP/s' : ''}</p>
    {roof && step.flops > 0 && step.bytes > 0 && <p>{S.graph.ofPeak(percent(partOfPeak(step, roof)),
      percent(step.flops / step.duration_us / 1e3 / bound(roof, step.flops / step.bytes)))}</p>}</>;
}

const PARTS: [string, string][] = [['te', 'te'], ['tir', 'tir'], ['asm', 'asm']];
const CUT = 60000;

function KernelPart({kernel, item}: {kernel: Kernel; item: Package}): JSX.Element {
  const [code, setCode] = useState<Record<string, string>>({});
  useEffect(() => setCode({}), [kernel.symbol, item.id]);
  const toggled = (stage: string) => (event: JSX.TargetedToggleEvent<HTMLDetailsElement>) => {
    if (!event.currentTarget.open || code[stage] !== undefined) return;
    void attempt(async () => {
      const part = sectionOf(await text('/v1/packages/' + item.id + '/code?stage=' + stage), kernel.symbol);
      setCode((before) => ({...before, [stage]: part.length > CUT ? part.slice(0, CUT) + '\n' + S.packages.cut : part || S.packages.noCode}));
    });
  };
  return (
    <>
      <h3>{S.graph.kernel}</h3>
      <ul>
        <li><a href={href('packages', item.id, {tab: 'code', kernel: kernel.symbol, stage: 'tir'})}>{kernel.symbol}</a></li>
        <li>{S.graph.schedule}: {kernel.tuning_record ? S.graph.tunedYes : kernel.tuning_reason || S.graph.scheduleWhy.none}</li>
        {kernel.algorithm && <li>{S.columns.algorithm}: {kernel.algorithm}{kernel.algorithm_reason ? ' (' + kernel.algorithm_reason + ')' : ''}</li>}
      </ul>
      {PARTS.map(([stage, name]) => <details key={kernel.symbol + stage} onToggle={toggled(stage)}><summary>{S.packages.stages[name]}</summary>
        <pre tabIndex={0} aria-label={S.packages.stages[name]}>{code[stage] ?? S.loading}</pre></details>)}
    </>);
}
