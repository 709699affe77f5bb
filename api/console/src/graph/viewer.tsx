// The graph of a model: as imported, optimized, or both beside each other; of a package with its kernels and times.
import type {JSX} from 'preact';
import {useMemo, useState} from 'preact/hooks';
import {digits, ms} from '../format';
import {get} from '../http';
import {useLoad} from '../load';
import {say} from '../notify';
import {profileOf, profiles, roofOf, roofs} from '../profile';
import {setQuery, usePlace} from '../router';
import {S} from '../strings';
import type {ModelGraph, Package, ProfileStep, Roof} from '../types';
import {Action, Loading} from '../ui';
import {Details} from './details';
import {type Net, netOf} from './net';
import {type Heat, type Layout, Pane, useLayout} from './pane';

type Stage = 'imported' | 'optimized';
const STAGES: Record<string, Stage[]> = {imported: ['imported'], optimized: ['optimized'], both: ['imported', 'optimized']};

/** What the colours of nodes say. */
type Hot = 'none' | 'time' | 'peak';

interface Shown { graph: ModelGraph; net: Net }

function useGraph(model: string, stage: Stage, wanted: boolean): Shown | null {
  const {data} = useLoad(wanted ? model + ' ' + stage : '', async (signal) => {
    if (!wanted) return null;
    const graph = await get<ModelGraph>('/v1/models/' + encodeURIComponent(model) + '/graph?stage=' + stage, signal);
    return {graph, net: netOf(graph)};
  });
  return data;
}

export function GraphTab({model, item}: {model: string; item?: Package}): JSX.Element {
  const {query} = usePlace();
  const how = query.get('stage') ?? (item ? 'optimized' : 'imported');
  const stages = STAGES[how] ?? STAGES['imported']!;
  const imported = useGraph(model, 'imported', stages.includes('imported'));
  const optimized = useGraph(model, 'optimized', stages.includes('optimized'));
  const shown: Record<Stage, Shown | null> = {imported, optimized};
  const active: Stage = stages.length === 1 ? stages[0]! : query.get('in') === 'optimized' ? 'optimized' : 'imported';
  const focus = shown[active];
  const chosen = focus ? nodeOf(focus.net, query.get('node')) : -1;
  const [hot, setHot] = useState<Hot>(item && profiles.has(item.id) ? 'time' : 'none');
  const steps = hot !== 'none' && item ? profiles.get(item.id) ?? null : null;
  const roof = hot === 'peak' && item ? roofs.get(item.id) ?? null : null;
  const choose = (stage: Stage, node: number) => {
    const {op, name} = shown[stage]!.net.nodes[node]!;
    setQuery({node: String(node), in: stages.length > 1 ? stage : null}, true);
    say(S.graph.selected(op, name));
  };
  const colour = async (by: Hot) => {
    if (by === hot) return setHot('none');
    await profileOf(item!.id);
    if (by === 'peak' && !await roofOf(item!.id)) throw new Error(S.graph.noPeak);
    setHot(by);
  };
  return (
    <div class="graph">
      <div class="bars">
        <div class="actions" role="group" aria-label={S.graph.stage}>{(['imported', 'optimized', 'both'] as const).map((name) =>
          <button key={name} type="button" class={name === how ? 'primary' : ''} aria-pressed={name === how} onClick={() => setQuery({stage: name, node: null, in: null})}>{S.graph[name]}</button>)}</div>
        {item && <div class="actions" role="group" aria-label={S.graph.colours}>
          <Action work={() => colour('time')} pressed={hot === 'time'}>{S.graph.heat}</Action>
          <Action work={() => colour('peak')} pressed={hot === 'peak'}>{S.graph.peak}</Action></div>}
        {focus && <Search net={focus.net} choose={(node) => choose(active, node)} />}
      </div>
      <div class="panes">
        {stages.map((stage) => {
          const one = shown[stage];
          if (!one) return <div class="pane" key={stage}><Loading /></div>;
          const linked = focus && stage !== active ? linkedTo(focus.net, chosen, one.net) : new Set<number>();
          return <Laid key={stage} stage={stage} net={one.net} chosen={stage === active ? chosen : -1} linked={linked} steps={steps} roof={roof}
            choose={(node) => choose(stage, node)} />;
        })}
      </div>
      <Details shown={focus ? {graph: focus.graph, net: focus.net, node: chosen} : null} item={item ?? null} steps={steps} roof={roof}
        choose={(node) => choose(active, node)} />
      {steps && roof && <p class="hint">{S.graph.peakWhy(digits(roof.gflops))}</p>}
      {steps && !roof && <p class="hint">{S.graph.heatWhy(ms(steps.reduce((sum, step) => sum + step.duration_us, 0) / 1000))}</p>}
      {stages.includes('optimized') && <p class="hint">{S.graph.target}{optimized?.graph.target ? ' (' + optimized.graph.target + ')' : ''}</p>}
    </div>);
}

function nodeOf(net: Net, text: string | null): number {
  const node = text === null ? -1 : Number(text);
  return Number.isInteger(node) && node >= 0 && node < net.nodes.length ? node : -1;
}

/** Nodes of another stage's graph that come from the same nodes of the model. */
function linkedTo(net: Net, chosen: number, other: Net): Set<number> {
  if (chosen < 0) return new Set();
  const {origins, op, name} = net.nodes[chosen]!;
  const wanted = new Set(origins);
  return new Set(other.nodes.flatMap((node, i) =>
    (node.origins.some((origin) => wanted.has(origin)) || (origins.length === 0 && node.op === op && node.name === name) ? [i] : [])));
}

/** For each node the step that computes it: the one with the most of its origins. */
export function stepOf(node: {origins: readonly string[]}, steps: readonly ProfileStep[]): number {
  let best = -1, most = 0;
  steps.forEach((step, i) => {
    const shared = step.origins.filter((origin) => node.origins.includes(origin)).length;
    if (shared > most || (shared > 0 && shared === most && best >= 0 && step.duration_us > steps[best]!.duration_us)) [best, most] = [i, shared];
  });
  return best;
}

/** A step's part of what the machine computes at most. */
export const partOfPeak = (step: ProfileStep, roof: Roof): number => Math.min(1, step.flops / Math.max(step.duration_us, 1e-6) / 1e3 / roof.gflops);

/** By time, against the longest step and the longest block; by the peak, against the peak. */
function heatOf(net: Net, steps: ProfileStep[], layout: Layout | null, roof: Roof | null): Heat {
  const byNode = net.nodes.map((node) => stepOf(node, steps));
  const blocks = new Map<number, Set<number>>();
  byNode.forEach((step, node) => {
    const block = layout?.of[node] ?? -1;
    if (step < 0 || block < 0) return;
    if (!blocks.has(block)) blocks.set(block, new Set());
    blocks.get(block)!.add(step);
  });
  const together = (layout?.names ?? []).map((_, block) => {
    const all = {duration_us: 0, flops: 0};
    for (const step of blocks.get(block) ?? []) {
      all.duration_us += steps[step]!.duration_us;
      all.flops += steps[step]!.flops;
    }
    return all as ProfileStep;
  });
  if (roof) return {ofNode: byNode.map((step) => (step < 0 ? null : partOfPeak(steps[step]!, roof))), ofBlock: together.map((all) => partOfPeak(all, roof))};
  const most = Math.max(1e-9, ...steps.map((step) => step.duration_us)), top = Math.max(1e-9, ...together.map((all) => all.duration_us));
  return {ofNode: byNode.map((step) => (step < 0 ? null : steps[step]!.duration_us / most)), ofBlock: together.map((all) => all.duration_us / top)};
}

function Laid({stage, net, chosen, linked, steps, roof, choose}: {
  stage: Stage; net: Net; chosen: number; linked: ReadonlySet<number>; steps: ProfileStep[] | null; roof: Roof | null; choose: (node: number) => void;
}): JSX.Element {
  const {layout, setOpen} = useLayout(net);
  const heat = useMemo(() => (steps ? heatOf(net, steps, layout, roof) : null), [net, steps, layout, roof]);
  return <Pane id={'graph-' + stage} title={S.graph[stage]} net={net} layout={layout} setOpen={setOpen} chosen={chosen} linked={linked} heat={heat} choose={choose} />;
}

const MATCHES = 40;

function Search({net, choose}: {net: Net; choose: (node: number) => void}): JSX.Element {
  const [words, setWords] = useState('');
  const wanted = words.trim().toLowerCase();
  const found = useMemo(() => {
    if (!wanted) return [];
    const has = (text: string) => text.toLowerCase().includes(wanted);
    return net.nodes.flatMap((node, i) => (has(node.op) || has(node.name) || node.outputs.some(has) || node.origins.some(has) || node.fused.some(has) ? [i] : []));
  }, [net, wanted]);
  return (
    <div class="search">
      <input type="search" id="find" placeholder={S.graph.search} aria-label={S.graph.search} value={words} onInput={(event) => setWords(event.currentTarget.value)}
        onKeyDown={(event) => { if (event.key === 'Enter' && found.length > 0) choose(found[0]!); }} />
      {wanted && <span role="status" class="hint"> {found.length === 0 ? S.graph.none : S.graph.found(found.length)}</span>}
      {found.length > 0 && <div class="matches actions">{found.slice(0, MATCHES).map((i) =>
        <button key={i} type="button" class="quiet small" onClick={() => choose(i)}>{net.nodes[i]!.op} · {net.nodes[i]!.name.slice(0, 60)}</button>)}</div>}
    </div>);
}
