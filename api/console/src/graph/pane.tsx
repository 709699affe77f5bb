// One graph on a canvas: pan by dragging, zoom by wheel, pinch or keys, choose by click or arrow keys.
import type {JSX} from 'preact';
import {useEffect, useMemo, useRef, useState} from 'preact/hooks';
import {say} from '../notify';
import {S} from '../strings';
import {bandsOf, type Bands, type Colors, colorsOf, draw, hit, type View} from './draw';
import type {Net} from './net';
import {CLOSED, NODE, OPEN, type Scene} from './scene';
import {toneOf} from './tones';
import type {Asked, Told} from './worker';
import {startWorker} from './start';

export interface Layout { scene: Scene; bands: Bands; of: number[]; names: string[]; sizes: number[]; open: Set<number> }

/** The worker's answers for a net, and how to open blocks. */
export function useLayout(net: Net): {layout: Layout | null; setOpen: (open: Set<number>) => void} {
  const [layout, setLayout] = useState<Layout | null>(null);
  const worker = useRef<Worker | null>(null);
  const asked = useRef<{open: Set<number>; turn: number}>({open: new Set(), turn: 0});
  const ask = (message: Asked) => worker.current?.postMessage(message);
  const setOpen = (open: Set<number>) => {
    asked.current = {open, turn: asked.current.turn + 1};
    ask({open: [...open], turn: asked.current.turn});
  };
  useEffect(() => {
    const started = startWorker();
    worker.current = started;
    let about: {blocks: number[]; names: string[]; sizes: number[]} | null = null;
    started.onmessage = ({data}: MessageEvent<Told>) => {
      if ('blocks' in data) about = data;
      else if (about && data.turn === asked.current.turn)
        setLayout({scene: data.scene, bands: bandsOf(data.scene), of: about.blocks, names: about.names, sizes: about.sizes, open: asked.current.open});
    };
    ask({net});
    setOpen(new Set());
    return () => {
      started.terminate();
      worker.current = null;
    };
  }, [net]);
  return {layout, setOpen};
}

export interface Heat { ofNode: (number | null)[]; ofBlock: (number | null)[] }

interface Props {
  net: Net; layout: Layout | null; setOpen: (open: Set<number>) => void; chosen: number; linked: ReadonlySet<number>; heat: Heat | null;
  /** Nodes that cannot be imported: red, as is the closed block that hides one. */
  bad?: ReadonlySet<number>;
  choose: (node: number) => void; title: string; id: string;
}

const clamp = (value: number, low: number, high: number): number => Math.max(low, Math.min(high, value));

export function fitted(scene: Scene, width: number, height: number): View {
  // The legend is above the graph, the buttons are below it.
  const scale = clamp(Math.min((width - 40) / Math.max(1, scene.width), (height - 90) / Math.max(1, scene.height)), 0.004, 1.1);
  return {scale, x: (width - scene.width * scale) / 2, y: 38 + (height - 90 - scene.height * scale) / 2};
}

/** The first look: the graph's width, from its top on, at a size that can be read. */
function opening(scene: Scene, width: number, height: number): View {
  const whole = fitted(scene, width, height);
  if (whole.scale >= 0.5) return whole;
  const scale = clamp((width - 40) / Math.max(1, scene.width), 0.35, 1);
  return {scale, x: (width - scene.width * scale) / 2, y: 38};
}

const NONE: ReadonlySet<number> = new Set();

export function Pane({net, layout, setOpen, chosen, linked, heat, bad = NONE, choose, title, id}: Props): JSX.Element {
  const canvas = useRef<HTMLCanvasElement>(null);
  const view = useRef<View | null>(null);
  const colors = useRef<Colors | null>(null);
  const frame = useRef(0);
  const state = useRef<Props & {layout: Layout | null}>(null!);
  state.current = {net, layout, setOpen, chosen, linked, heat, bad, choose, title, id};
  const paint = () => {
    frame.current = 0;
    const {current} = canvas;
    const now = state.current;
    if (!current || !now.layout) return;
    const ratio = Math.min(2, devicePixelRatio);
    const [width, height] = [Math.round(current.clientWidth * ratio), Math.round(current.clientHeight * ratio)];
    if (current.width !== width || current.height !== height) [current.width, current.height] = [width, height];
    view.current ??= opening(now.layout.scene, current.clientWidth, current.clientHeight);
    colors.current ??= colorsOf(current.parentElement!);
    draw(current, now.layout.scene, now.layout.bands, view.current, lookOf(now.net, now.layout, now.chosen, now.linked, now.heat, now.bad ?? NONE, colors.current), colors.current);
    current.dataset['drawn'] = String(Number(current.dataset['drawn'] ?? 0) + 1);
  };
  const again = () => { frame.current ||= requestAnimationFrame(paint); };
  useEffect(again);
  useEffect(() => {
    const sizes = new ResizeObserver(again);
    sizes.observe(canvas.current!);
    const themed = () => {
      colors.current = null;
      again();
    };
    const themes = new MutationObserver(themed);
    themes.observe(document.documentElement, {attributes: true, attributeFilter: ['data-theme']});
    const system = matchMedia('(prefers-color-scheme: dark)');
    system.addEventListener('change', themed);
    return () => {
      sizes.disconnect();
      themes.disconnect();
      system.removeEventListener('change', themed);
      cancelAnimationFrame(frame.current);
      frame.current = 0;
    };
  }, []);
  // A node that is chosen from elsewhere is brought into the middle; what its block hides is opened first.
  useEffect(() => {
    if (!layout || chosen < 0) return;
    const block = layout.of[chosen]!;
    if (block >= 0 && !layout.open.has(block)) setOpen(new Set(layout.open).add(block));
    else bring(layout, chosen);
  }, [layout, chosen]);
  const bring = (where: Layout, node: number) => {
    const {current} = canvas;
    const at = boxOf(where.scene, NODE, node);
    if (!current || at < 0) return;
    const now = view.current ?? opening(where.scene, current.clientWidth, current.clientHeight);
    const [x, y] = [where.scene.x[at]! + where.scene.w[at]! / 2, where.scene.y[at]! + where.scene.h[at]! / 2];
    const inside = x * now.scale + now.x > 30 && x * now.scale + now.x < current.clientWidth - 30 && y * now.scale + now.y > 30 && y * now.scale + now.y < current.clientHeight - 30;
    if (inside && now.scale >= 0.3) return;
    const scale = Math.max(now.scale, 0.6);
    view.current = {scale, x: current.clientWidth / 2 - x * scale, y: current.clientHeight / 2 - y * scale};
    again();
  };
  const zoom = (factor: number, x = canvas.current!.clientWidth / 2, y = canvas.current!.clientHeight / 2) => {
    const now = view.current;
    if (!now) return;
    const scale = clamp(now.scale * factor, 0.004, 4);
    view.current = {scale, x: x - (x - now.x) * scale / now.scale, y: y - (y - now.y) * scale / now.scale};
    again();
  };
  const fit = () => {
    if (layout) view.current = fitted(layout.scene, canvas.current!.clientWidth, canvas.current!.clientHeight);
    again();
  };
  const toggle = (block: number) => {
    if (!layout) return;
    const open = new Set(layout.open);
    if (!open.delete(block)) open.add(block);
    setOpen(open);
    say(open.has(block) ? S.graph.openBlock : S.graph.closeBlock);
  };
  const handlers = usePointers(canvas, view, again, zoom, (x, y, twice) => {
    if (!layout) return;
    const at = hit(layout.scene, layout.bands, x, y);
    if (at < 0) return;
    const kind = layout.scene.kind[at]!, ref = layout.scene.ref[at]!;
    if (kind === NODE) choose(ref);
    else if (kind === CLOSED || twice) toggle(ref);
  });
  const pressed = (event: JSX.TargetedKeyboardEvent<HTMLCanvasElement>) => {
    const step: Record<string, () => void> = {
      '+': () => zoom(1.25), '=': () => zoom(1.25), '-': () => zoom(0.8), '0': fit,
      ArrowDown: () => move(1), ArrowUp: () => move(-1), ArrowRight: () => beside(1), ArrowLeft: () => beside(-1),
      Enter: () => { if (chosen >= 0 && layout && layout.of[chosen]! >= 0) toggle(layout.of[chosen]!); },
    };
    const act = step[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  };
  /** Along an edge: to what reads the chosen node, or what it reads. */
  const move = (direction: number) => {
    if (chosen < 0) return choose(0);
    const next = net.edges.find(([from, to]) => (direction > 0 ? from : to) === chosen);
    if (next) choose(direction > 0 ? next[1] : next[0]);
  };
  /** To the node before or behind in the model's order. */
  const beside = (direction: number) => choose(clamp(chosen + direction, 0, net.nodes.length - 1));
  const all = useMemo(() => new Set((layout?.names ?? []).map((_, i) => i)), [layout?.names]);
  const isOpen = layout !== null && layout.open.size === all.size;
  return (
    <div class="pane" id={id}>
      <canvas ref={canvas} tabIndex={0} role="application" aria-roledescription="graph" onKeyDown={pressed} {...handlers}
        aria-label={title + '. ' + S.graph.canvas(net.own, layout?.names.length ?? 0)}
        data-boxes={layout ? layout.scene.x.length : ''} />
      <p class="legend">{title}: {layout ? S.graph.legend(net.own, layout.names.length) : S.graph.laying}</p>
      <div class="tools">
        {all.size > 0 && <button type="button" class="quiet" onClick={() => { view.current = null; setOpen(isOpen ? new Set() : all); }}>{isOpen ? S.graph.collapse : S.graph.expand}</button>}
        <button type="button" class="quiet" aria-label={S.graph.zoomOut} onClick={() => zoom(0.7)}>−</button>
        <button type="button" class="quiet" aria-label={S.graph.zoomIn} onClick={() => zoom(1.4)}>+</button>
        <button type="button" class="quiet" onClick={fit}>{S.graph.fit}</button>
      </div>
    </div>);
}

function boxOf(scene: Scene, kind: number, ref: number): number {
  return scene.ref.findIndex((value, i) => value === ref && scene.kind[i] === kind);
}

function lookOf(net: Net, layout: Layout, chosen: number, linked: ReadonlySet<number>, heat: Heat | null, bad: ReadonlySet<number>, colors: Colors) {
  const badBlocks = new Set([...bad].map((node) => layout.of[node]!));
  const opOf = (node: number) => {
    const {op, fused} = net.nodes[node]!;
    return fused.length > 0 ? fused.join(' + ') : op;
  };
  return {
    label: (kind: number, ref: number) => (kind === NODE ? opOf(ref) : layout.names[ref]!),
    sub: (kind: number, ref: number) => (kind === NODE ? net.nodes[ref]!.type || net.nodes[ref]!.name : S.graph.block(layout.sizes[ref]!)),
    tone: (kind: number, ref: number) => (kind === NODE ? toneOf(net.nodes[ref]!.op, net.nodes[ref]!.fused) : colors.soft),
    heat: (kind: number, ref: number) => (!heat || kind === OPEN ? null : kind === NODE ? heat.ofNode[ref] ?? null : heat.ofBlock[ref] ?? null),
    bad: (kind: number, ref: number) => (kind === NODE ? bad.has(ref) : kind === CLOSED && badBlocks.has(ref)),
    chosen: (kind: number, ref: number): 0 | 1 | 2 => (kind !== NODE ? 0 : ref === chosen ? 1 : linked.has(ref) ? 2 : 0),
  };
}

/** Dragging, wheel and pinch; a press that does not move is a click, told in the scene's coordinates. */
function usePointers(canvas: {current: HTMLCanvasElement | null}, view: {current: View | null}, again: () => void,
                     zoom: (factor: number, x: number, y: number) => void, click: (x: number, y: number, twice: boolean) => void) {
  const held = useRef(new Map<number, {x: number; y: number}>());
  const moved = useRef(0);
  const at = (event: MouseEvent) => {
    const box = canvas.current!.getBoundingClientRect();
    return {x: event.clientX - box.left, y: event.clientY - box.top};
  };
  const scene = (event: MouseEvent) => {
    const point = at(event), now = view.current ?? {scale: 1, x: 0, y: 0};
    return {x: (point.x - now.x) / now.scale, y: (point.y - now.y) / now.scale};
  };
  return {
    onPointerDown: (event: PointerEvent) => {
      canvas.current!.setPointerCapture(event.pointerId);
      held.current.set(event.pointerId, at(event));
      moved.current = 0;
    },
    onPointerMove: (event: PointerEvent) => {
      const before = held.current.get(event.pointerId), now = view.current;
      if (!before || !now) return;
      const point = at(event);
      const other = [...held.current].find(([id]) => id !== event.pointerId)?.[1];
      moved.current += Math.abs(point.x - before.x) + Math.abs(point.y - before.y);
      held.current.set(event.pointerId, point);
      if (other) {
        const spread = (p: {x: number; y: number}) => Math.hypot(p.x - other.x, p.y - other.y) || 1;
        zoom(spread(point) / spread(before), other.x, other.y);
        return;
      }
      view.current = {...now, x: now.x + point.x - before.x, y: now.y + point.y - before.y};
      again();
    },
    onPointerUp: (event: PointerEvent) => {
      held.current.delete(event.pointerId);
      if (moved.current > 6) return;
      const {x, y} = scene(event);
      click(x, y, false);
    },
    onPointerCancel: (event: PointerEvent) => { held.current.delete(event.pointerId); },
    onDblClick: (event: MouseEvent) => {
      const {x, y} = scene(event);
      click(x, y, true);
    },
    onWheel: (event: WheelEvent) => {
      event.preventDefault();
      const {x, y} = at(event);
      zoom(Math.exp(-clamp(event.deltaY, -120, 120) * (event.ctrlKey ? 0.01 : 0.0022)), x, y);
    },
  };
}
