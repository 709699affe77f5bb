// The graph of a model that cannot be imported: what is in the way is red, and says why.
import type {JSX} from 'preact';
import {useMemo, useState} from 'preact/hooks';
import {S} from '../strings';
import type {Graph} from '../types';
import {netOf} from './net';
import {Pane, useLayout} from './pane';

const LISTED = 100;

export function RefusedGraph({graph}: {graph: Graph}): JSX.Element | null {
  const net = useMemo(() => netOf(graph), [graph]);
  const bad = useMemo(() => new Set([...net.nodes.keys()].filter((i) => net.nodes[i]!.refused.length > 0)), [net]);
  const {layout, setOpen} = useLayout(net);
  const [chosen, setChosen] = useState(() => [...bad][0] ?? -1);
  const node = net.nodes[chosen];
  const label = (i: number) => net.nodes[i]!.op + ' · ' + net.nodes[i]!.name;
  // Of an input or a weight in the way the list of the error says all.
  if (bad.size === 0) return null;
  return (
    <section class="panel" id="refused" aria-labelledby="refused-title">
      <h2 id="refused-title">{S.graph.refused(bad.size, graph.nodes.length)}</h2>
      <div class="graph">
        <div class="panes"><Pane id="graph-refused" title={S.graph.inFile} net={net} layout={layout} setOpen={setOpen} chosen={chosen} linked={bad} heat={null} bad={bad} choose={setChosen} /></div>
        <div class="side" id="details" role="group" aria-label={S.graph.details}>
          <h3>{S.graph.inTheWay}</h3>
          <ul>{[...bad].slice(0, LISTED).map((i) => <li key={i}><button type="button" class="link" aria-pressed={i === chosen} onClick={() => setChosen(i)}>{label(i)}</button></li>)}</ul>
          {node && <><h2>{node.op}</h2><p class="hint">{node.name}</p>
            {node.refused.map((reason) => <p key={reason} class="failed">{reason}</p>)}</>}
        </div>
      </div>
    </section>);
}
