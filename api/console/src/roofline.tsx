// Where kernels stand against what the machine can do at most: rate over intensity, both by powers of ten.
import type {JSX} from 'preact';
import {digits} from './format';
import {S} from './strings';
import type {Roof, Task} from './types';

export interface Point { name: string; intensity: number; gflops: number }

/** Kernels that compute something and were measured. */
export function pointsOf(tasks: readonly Task[]): Point[] {
  return tasks.flatMap(({name, flops, bytes, gflops}) => (flops && bytes && gflops ? [{name, intensity: flops / bytes, gflops}] : []));
}

/** What a kernel of this intensity could do with its data in the cache: a part of it is what it does. */
export const bound = (roof: Roof, intensity: number): number => Math.min(roof.gflops, intensity * roof.l2_gbytes_per_s);

const [WIDTH, HEIGHT] = [640, 260], PAD = {left: 54, right: 14, top: 18, bottom: 34};

/** Powers of ten around the values. */
function decades(values: readonly number[]): [number, number] {
  const logs = values.map(Math.log10);
  const low = Math.floor(Math.min(...logs)), high = Math.ceil(Math.max(...logs));
  return [low, Math.max(high, low + 1)];
}

export function Roofline({roof, tasks}: {roof: Roof; tasks: readonly Task[]}): JSX.Element | null {
  const points = pointsOf(tasks);
  if (points.length === 0) return null;
  const ridge = roof.gflops / roof.memory_gbytes_per_s;
  const [left, right] = decades([...points.map((point) => point.intensity), ridge]);
  const [bottom, top] = decades([...points.map((point) => point.gflops), roof.gflops]);
  const x = (value: number) => PAD.left + (WIDTH - PAD.left - PAD.right) * (Math.log10(value) - left) / (right - left);
  const y = (value: number) => HEIGHT - PAD.bottom - (HEIGHT - PAD.top - PAD.bottom) * (Math.log10(value) - bottom) / (top - bottom);
  const edge = (rate: number) => {
    // From the left side, or from where it comes in at the bottom, to the ridge, and on to the right side.
    const start = Math.max(10 ** left, 10 ** bottom / rate), bend = Math.min(10 ** right, Math.max(start, roof.gflops / rate));
    const at = (value: number) => x(value).toFixed(1) + ',' + y(Math.min(roof.gflops, value * rate)).toFixed(1);
    return [start, bend, 10 ** right].map(at).join(' ');
  };
  const steps = (from: number, to: number) => Array.from({length: to - from + 1}, (_, i) => 10 ** (from + i));
  const best = points.reduce((a, b) => (a.gflops / bound(roof, a.intensity) > b.gflops / bound(roof, b.intensity) ? a : b));
  const words = S.roofline.words(digits(roof.gflops), digits(roof.memory_gbytes_per_s), digits(roof.l2_gbytes_per_s), best.name,
    Math.round(100 * best.gflops / bound(roof, best.intensity)));
  return (
    <figure id="roofline"><h2>{S.roofline.title}</h2>
      <svg class="chart" role="img" aria-label={words} viewBox={`0 0 ${WIDTH} ${HEIGHT}`}>
        {steps(bottom, top).map((value) => <g key={'y' + value}><line class="grid" x1={PAD.left} x2={WIDTH - PAD.right} y1={y(value)} y2={y(value)} />
          <text class="tick" x={PAD.left - 6} y={y(value) + 4} text-anchor="end">{digits(value)}</text></g>)}
        {steps(left, right).map((value) => <text key={'x' + value} class="tick" x={x(value)} y={HEIGHT - PAD.bottom + 14} text-anchor="middle">{digits(value)}</text>)}
        <text class="tick" x={PAD.left} y={12}>{S.columns.gflops}</text>
        <text class="tick" x={WIDTH - PAD.right} y={HEIGHT - 4} text-anchor="end">{S.roofline.intensity}</text>
        <polyline class="line faint dashed" points={edge(roof.l2_gbytes_per_s)} /><polyline class="line" points={edge(roof.memory_gbytes_per_s)} />
        {points.map((point, i) => <circle key={i} class="dot" r="4" cx={x(point.intensity)} cy={y(point.gflops)}><title>{point.name}</title></circle>)}
      </svg>
      <figcaption>{words}</figcaption></figure>);
}
