// The graph of a model that cannot be imported: what is in the way is red, and says why.
import type {JSX} from 'preact';
import {useMemo, useState} from 'preact/hooks';
import {S} from '../strings';
import type {ErrorDetail, Graph} from '../types';
import {netOf, type Net} from './net';
import {Pane, useLayout} from './pane';

/** By node what is said of it: of itself, or of what is inside it, a function's body or a branch. */
export function reasonsOf(net: Net, errors: readonly ErrorDetail[]): Map<number, string[]> {
  const reasons = new Map<number, string[]>();
  net.nodes.forEach((node, i) => {
    const [name] = node.origins;
    if (name === undefined) return;
    const found = errors.filter(({pointer = ''}) => pointer === name || pointer.startsWith(name + '/') || pointer.startsWith(node.op + '/'));
    if (found.length > 0) reasons.set(i, [...new Set(found.map((error) => error.detail ?? ''))]);
  });
  return reasons;
}

const LISTED = 100;

export function RefusedGraph({graph, errors}: {graph: Graph; errors: ErrorDetail[]}): JSX.Element {
  const net = useMemo(() => netOf(graph), [graph]);
  const reasons = useMemo(() => reasonsOf(net, errors), [net, errors]);
  const bad = useMemo(() => new Set(reasons.keys()), [reasons]);
  const {layout, setOpen} = useLayout(net);
  const [chosen, setChosen] = useState(() => [...reasons.keys()][0] ?? -1);
  const node = net.nodes[chosen];
  const label = (i: number) => net.nodes[i]!.op + ' · ' + net.nodes[i]!.name;
  return (
    <section class="panel" id="refused" aria-labelledby="refused-title">
      <h2 id="refused-title">{S.graph.refused(bad.size, graph.nodes.length)}</h2>
      <div class="graph">
        <div class="panes"><Pane id="graph-refused" title={S.graph.inFile} net={net} layout={layout} setOpen={setOpen} chosen={chosen} linked={bad} heat={null} bad={bad} choose={setChosen} /></div>
        <div class="side" id="details" role="group" aria-label={S.graph.details}>
          <h3>{S.graph.inTheWay}</h3>
          <ul>{[...bad].slice(0, LISTED).map((i) => <li key={i}><button type="button" class="link" aria-pressed={i === chosen} onClick={() => setChosen(i)}>{label(i)}</button></li>)}</ul>
          {node && <><h2>{node.op}</h2><p class="hint">{node.name}</p>
            {(reasons.get(chosen) ?? []).map((reason) => <p key={reason} class="failed">{reason}</p>)}</>}
        </div>
      </div>
    </section>);
}
