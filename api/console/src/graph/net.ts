// A graph as the viewer sees it: boxes and the edges between them, and which boxes form a block. Pure functions, which run
// in the worker and in tests alike.
import type {Graph} from '../types';

export interface NetNode { op: string; name: string; type: string; origins: string[]; outputs: string[]; fused: string[]; refused: string[] }
/** `nodes` are the graph's inputs, its `own` nodes in order, and its outputs; an edge is a pair of indices into them. */
export interface Net { nodes: NetNode[]; edges: [number, number][]; own: number }

/** Constants are no nodes: they would be as many as all others together. */
export function netOf(graph: Graph): Net {
  const nodes: NetNode[] = [];
  const producer = new Map<string, number>();
  const typeOf = (value: string) => graph.values[value]?.type ?? '';
  for (const name of graph.inputs) {
    producer.set(name, nodes.length);
    nodes.push({op: 'input', name, type: typeOf(name), origins: [], outputs: [name], fused: [], refused: []});
  }
  const first = nodes.length;
  for (const node of graph.nodes) {
    for (const output of node.outputs) producer.set(output, nodes.length);
    const name = node.origins[0] ?? node.outputs[0] ?? '';
    const fused = node.region ? node.region.nodes.map((inner) => inner.op) : [];
    nodes.push({op: node.op, name, type: typeOf(node.outputs[0] ?? ''), origins: node.origins, outputs: node.outputs, fused, refused: node.refused ?? []});
  }
  const edges: [number, number][] = [];
  const seen = new Set<number>();
  const join = (value: string, to: number) => {
    const from = producer.get(value);
    if (from === undefined || from === to || seen.has(from * 1e7 + to)) return;
    seen.add(from * 1e7 + to);
    edges.push([from, to]);
  };
  graph.nodes.forEach((node, i) => node.inputs.forEach((value) => join(value, first + i)));
  for (const name of graph.outputs) {
    join(name, nodes.length);
    nodes.push({op: 'output', name, type: typeOf(name), origins: [], outputs: [], fused: [], refused: []});
  }
  return {nodes, edges, own: graph.nodes.length};
}

/** Graphs of up to this many nodes are shown whole. */
const SMALL = 48;

export interface Blocks { of: Int32Array; names: string[] }

/**
 * Which block each node is in; -1: in none. Names that are paths say what belongs together, as their makers meant it;
 * where they are none, the graph is cut where the fewest values pass.
 */
export function blocksOf(net: Net): Blocks {
  const none: Blocks = {of: new Int32Array(net.nodes.length).fill(-1), names: []};
  if (net.nodes.length <= SMALL) return none;
  const named = byNames(net);
  return splitCycles(net, tidy(named ?? byWaists(net)));
}

const pathOf = (name: string): string[] => name.split(/[/.]/).filter(Boolean);

function byNames(net: Net): Blocks | null {
  const paths = net.nodes.map((node) => (node.origins.length > 0 ? pathOf(node.name).slice(0, -1) : []));
  if (paths.filter((path) => path.length > 0).length < net.nodes.length / 2) return null;
  const wanted = Math.log(1.5 * Math.sqrt(net.nodes.length));
  let best: string[] | null = null, distance = Infinity;
  for (let depth = 1; depth <= 6; ++depth) {
    const keys = paths.map((path) => path.slice(0, depth).join('/'));
    const sizes = new Map<string, number>();
    for (const key of keys) sizes.set(key, (sizes.get(key) ?? 0) + 1);
    const far = Math.abs(Math.log(sizes.size) - wanted);
    if (far < distance && Math.max(...sizes.values()) <= Math.max(SMALL, net.nodes.length / 4)) [best, distance] = [keys, far];
  }
  return best && numbered(best);
}

/** Blocks by key; "" is no block. */
function numbered(keys: string[]): Blocks {
  const numbers = new Map<string, number>();
  const of = Int32Array.from(keys, (key) => {
    if (key === '') return -1;
    if (!numbers.has(key)) numbers.set(key, numbers.size);
    return numbers.get(key)!;
  });
  return {of, names: [...numbers.keys()]};
}

/** Nodes come in an order in which each follows what it reads: what lives between two of them crosses the cut there. */
function byWaists(net: Net): Blocks {
  const n = net.nodes.length;
  const last = new Int32Array(n).map((_, i) => i);
  for (const [from, to] of net.edges) last[from] = Math.max(last[from]!, to);
  const live = new Int32Array(n + 1);
  for (let i = 0; i < n; ++i) {
    if (last[i]! <= i) continue;
    live[i + 1]! += 1;
    live[last[i]! + 1 <= n ? last[i]! + 1 : n]! -= 1;
  }
  for (let i = 1; i <= n; ++i) live[i]! += live[i - 1]!;
  const size = Math.max(12, Math.round(Math.sqrt(n)));
  const keys: string[] = new Array<string>(n).fill('');
  for (let start = 0, block = 1; start < n; ++block) {
    let end = Math.min(n, start + size);
    if (end < n) {
      for (let cut = start + (size >> 1); cut <= Math.min(n - 1, start + 2 * size); ++cut)
        if (live[cut]! < live[end]! || (live[cut]! === live[end]! && Math.abs(cut - start - size) < Math.abs(end - start - size))) end = cut;
    }
    for (let i = start; i < end; ++i) keys[i] = isBorder(net, i) ? '' : 'part ' + block;
    start = end;
  }
  return numbered(keys);
}

const isBorder = (net: Net, i: number): boolean => net.nodes[i]!.op === 'input' || net.nodes[i]!.op === 'output';

/** A block of one node is none. */
function tidy(blocks: Blocks): Blocks {
  const sizes = new Int32Array(blocks.names.length);
  for (const block of blocks.of) if (block >= 0) ++sizes[block]!;
  return numbered([...blocks.of].map((block) => (block < 0 || sizes[block]! < 2 ? '' : blocks.names[block]!)));
}

/** Blocks that feed each other in a ring are cut into runs of nodes that follow one another. */
function splitCycles(net: Net, blocks: Blocks): Blocks {
  for (let turn = 0; turn < 4; ++turn) {
    const rings = blocksInRings(net, blocks);
    if (rings.size === 0) return blocks;
    let before = -1, run = 0;
    const keys = [...blocks.of].map((block, i) => {
      if (block < 0) return '';
      if (!rings.has(block)) return blocks.names[block]!;
      if (block !== before || i === 0) ++run;
      before = block;
      return blocks.names[block]! + ' · ' + run;
    });
    blocks = tidy(numbered(keys));
  }
  return blocks;
}

/** Groups of the graph of blocks and loose nodes that can be reached from themselves. */
function blocksInRings(net: Net, blocks: Blocks): Set<number> {
  const place = (node: number) => (blocks.of[node]! >= 0 ? blocks.of[node]! : blocks.names.length + node);
  const total = blocks.names.length + net.nodes.length;
  const out: number[][] = Array.from({length: total}, () => []);
  const degree = new Int32Array(total);
  for (const [from, to] of net.edges) {
    const [a, b] = [place(from), place(to)];
    if (a === b) continue;
    out[a]!.push(b);
    ++degree[b]!;
  }
  // What can be taken away, again and again, as nothing is left before it, is in no ring.
  const ready = [...degree.keys()].filter((i) => degree[i] === 0);
  while (ready.length > 0) for (const next of out[ready.pop()!]!) if (--degree[next]! === 0) ready.push(next);
  return new Set([...degree.keys()].filter((i) => degree[i]! > 0 && i < blocks.names.length));
}
