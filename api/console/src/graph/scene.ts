// What is drawn: the boxes of nodes and blocks and the lines between them, for a choice of open blocks. Each block is laid
// out once by itself, so opening another one changes places, never what is inside.
import {type Placed, layered} from './layered';
import {type Blocks, type Net, blocksOf} from './net';

export const NODE = 0, CLOSED = 1, OPEN = 2;

/** `kind` and `ref` (a node or a block) of each box and its place; lines as points from `starts[i]` to `starts[i + 1]`. */
export interface Scene {
  kind: Uint8Array; ref: Int32Array; x: Float32Array; y: Float32Array; w: Float32Array; h: Float32Array;
  starts: Int32Array; points: Float32Array; ends: Int32Array; width: number; height: number;
}

const HEIGHT = 42, PAD = 14, HEAD = 26;

export const boxWidth = (op: string, type: string): number => Math.max(84, Math.min(280, Math.max(op.length * 8, type.length * 6.4) + 26));

interface Inside { nodes: number[]; placed: Placed; edges: [number, number][] }

export class Scenes {
  readonly blocks: Blocks;
  private readonly members: number[][];
  private readonly inside = new Map<number, Inside>();

  constructor(private readonly net: Net) {
    this.blocks = blocksOf(net);
    this.members = this.blocks.names.map(() => []);
    this.blocks.of.forEach((block, node) => { if (block >= 0) this.members[block]!.push(node); });
  }

  get sizes(): Int32Array {
    return Int32Array.from(this.members, (nodes) => nodes.length);
  }

  private width(node: number): number {
    const {op, type, fused} = this.net.nodes[node]!;
    return boxWidth(fused.length > 0 ? fused.join(' + ') : op, type);
  }

  private laid(block: number): Inside {
    const known = this.inside.get(block);
    if (known) return known;
    const nodes = this.members[block]!;
    const local = new Map(nodes.map((node, i): [number, number] => [node, i]));
    const edges = this.net.edges.filter(([from, to]) => this.blocks.of[from] === block && this.blocks.of[to] === block)
      .map(([from, to]): [number, number] => [local.get(from)!, local.get(to)!]);
    const placed = layered(nodes.map((node) => this.width(node)), nodes.map(() => HEIGHT), edges);
    const made = {nodes, placed, edges};
    this.inside.set(block, made);
    return made;
  }

  /** Boxes come open blocks first, so that what is in them is drawn over them. */
  scene(open: ReadonlySet<number>): Scene {
    const {net, blocks} = this;
    const top: {block: number; node: number}[] = blocks.names.map((_, block) => ({block, node: -1}));
    const placeOf = new Int32Array(net.nodes.length);
    blocks.of.forEach((block, node) => {
      placeOf[node] = block >= 0 ? block : top.push({block: -1, node}) - 1;
    });
    const width: number[] = [], height: number[] = [];
    for (const {block, node} of top) {
      const box = block < 0 ? null : open.has(block) ? this.laid(block).placed : null;
      width.push(block < 0 ? this.width(node) : box ? Math.max(box.width + 2 * PAD, 160) : boxWidth(blocks.names[block]!, 'Block of 1000 nodes'));
      height.push(block < 0 ? HEIGHT : box ? box.height + 2 * PAD + HEAD : HEIGHT + 8);
    }
    const between = new Map<number, [number, number]>();
    for (const [from, to] of net.edges) {
      const [a, b] = [placeOf[from]!, placeOf[to]!];
      if (a !== b) between.set(a * 1e7 + b, [a, b]);
    }
    const edges = [...between.values()];
    const placed = layered(width, height, edges);
    return this.compose(open, top, placeOf, placed, width, height, edges);
  }

  private compose(open: ReadonlySet<number>, top: {block: number; node: number}[], placeOf: Int32Array, placed: Placed, width: number[],
                  height: number[], edges: [number, number][]): Scene {
    const boxes: {kind: number; ref: number; x: number; y: number; w: number; h: number}[] = [];
    const boxOfNode = new Int32Array(this.net.nodes.length).fill(-1);
    const inner: {kind: number; ref: number; x: number; y: number; w: number; h: number}[] = [];
    const lines: {points: number[]; from: number; to: number}[] = [];
    top.forEach(({block, node}, i) => {
      const box = {x: placed.x[i]!, y: placed.y[i]!, w: width[i]!, h: height[i]!};
      if (block < 0) inner.push({kind: NODE, ref: node, ...box});
      else if (!open.has(block)) inner.push({kind: CLOSED, ref: block, ...box});
      else {
        boxes.push({kind: OPEN, ref: block, ...box});
        const {nodes, placed: inside} = this.laid(block);
        const left = box.x + (box.w - inside.width) / 2;
        nodes.forEach((one, k) => inner.push({kind: NODE, ref: one, x: left + inside.x[k]!, y: box.y + PAD + HEAD + inside.y[k]!, w: this.width(one), h: HEIGHT}));
      }
    });
    const all = boxes.concat(inner);
    const boxOfBlock = new Int32Array(this.blocks.names.length).fill(-1);
    all.forEach((box, i) => { if (box.kind === NODE) boxOfNode[box.ref] = i; else if (box.kind === CLOSED) boxOfBlock[box.ref] = i; });
    const boxOf = (node: number) => (boxOfNode[node]! >= 0 ? boxOfNode[node]! : boxOfBlock[this.blocks.of[node]!]!);
    this.route(all, boxOf, placeOf, placed, edges, lines);
    return pack(all, lines, placed);
  }

  /** A line from the foot of one box, by the points that its blocks' edge goes through, to the head of another. */
  private route(all: {x: number; y: number; w: number; h: number}[], boxOf: (node: number) => number, placeOf: Int32Array,
                placed: Placed, edges: [number, number][], lines: {points: number[]; from: number; to: number}[]): void {
    const bends = new Map(edges.map(([a, b], e): [number, Float32Array] => [a * 1e7 + b, placed.bends[e]!]));
    const inside = new Map<number, Map<number, Float32Array>>();
    const seen = new Set<number>();
    for (const [from, to] of this.net.edges) {
      const [a, b] = [boxOf(from), boxOf(to)];
      if (a === b || seen.has(a * 1e7 + b)) continue;
      seen.add(a * 1e7 + b);
      const block = this.blocks.of[from]!;
      let middle: number[];
      if (placeOf[from] !== placeOf[to]) middle = [...(bends.get(placeOf[from]! * 1e7 + placeOf[to]!) ?? [])];
      else {
        const {nodes, placed: laid, edges: own} = this.laid(block);
        if (!inside.has(block)) inside.set(block, new Map(own.map(([u, v], e): [number, Float32Array] => [nodes[u]! * 1e7 + nodes[v]!, laid.bends[e]!])));
        const first = all[boxOf(nodes[0]!)]!;
        const [dx, dy] = [first.x - laid.x[0]!, first.y - laid.y[0]!];
        middle = [...(inside.get(block)!.get(from * 1e7 + to) ?? [])].map((value, i) => value + (i % 2 === 0 ? dx : dy));
      }
      const [source, target] = [all[a]!, all[b]!];
      lines.push({from: a, to: b, points: [source.x + source.w / 2, source.y + source.h, ...middle, target.x + target.w / 2, target.y]});
    }
  }
}

function pack(all: {kind: number; ref: number; x: number; y: number; w: number; h: number}[], lines: {points: number[]; from: number; to: number}[], placed: Placed): Scene {
  const starts = new Int32Array(lines.length + 1);
  lines.forEach((line, i) => { starts[i + 1] = starts[i]! + line.points.length; });
  const points = new Float32Array(starts[lines.length]!);
  lines.forEach((line, i) => points.set(line.points, starts[i]!));
  const ends = new Int32Array(lines.length * 2);
  lines.forEach((line, i) => { ends[2 * i] = line.from; ends[2 * i + 1] = line.to; });
  return {
    kind: Uint8Array.from(all, (box) => box.kind), ref: Int32Array.from(all, (box) => box.ref), x: Float32Array.from(all, (box) => box.x),
    y: Float32Array.from(all, (box) => box.y), w: Float32Array.from(all, (box) => box.w), h: Float32Array.from(all, (box) => box.h),
    starts, points, ends, width: placed.width, height: placed.height,
  };
}
