// Charts as SVG: each says in words what it shows, and the numbers stand in a table beside it.
import type {JSX} from 'preact';
import {digits} from './format';

export interface Line { points: [number, number][]; tone?: string; dashed?: boolean }

const PAD = {left: 46, right: 10, top: 20, bottom: 22};

/** Lines over x; y begins at `low` or at the least value. */
export function LineChart({lines, label, width = 640, height = 160, low, level, unit = ''}: {
  lines: Line[]; label: string; width?: number; height?: number; low?: number; level?: {at: number; name: string}; unit?: string;
}): JSX.Element {
  const all = lines.flatMap((line) => line.points);
  const xs = all.map(([x]) => x), ys = all.map(([, y]) => y).concat(level ? [level.at] : []);
  const [left, right] = [Math.min(...xs), Math.max(...xs)];
  // A level line stands in the middle.
  const flat = Math.max(...ys) === Math.min(...ys) ? Math.abs(ys[0] ?? 0) * 0.1 : 0;
  const bottom = low ?? Math.min(...ys) - flat, top = Math.max(...ys) + flat;
  const span = top - bottom || Math.abs(top) || 1;
  const x = (value: number) => PAD.left + (width - PAD.left - PAD.right) * (right === left ? 0.5 : (value - left) / (right - left));
  const y = (value: number) => height - PAD.bottom - (height - PAD.top - PAD.bottom) * ((value - bottom) / span);
  return (
    <svg class="chart" role="img" aria-label={label} viewBox={`0 0 ${width} ${height}`}>
      {[bottom, (bottom + top) / 2, top].map((value, i) => <g key={i}>
        <line class="grid" x1={PAD.left} x2={width - PAD.right} y1={y(value)} y2={y(value)} />
        <text class="tick" x={PAD.left - 6} y={y(value) + 4} text-anchor="end">{digits(value)}</text></g>)}
      <text class="tick" x={PAD.left} y={height - 6}>{digits(left)}</text>
      <text class="tick" x={width - PAD.right} y={height - 6} text-anchor="end">{digits(right) + unit}</text>
      {level && <g><line class="level" x1={PAD.left} x2={width - PAD.right} y1={y(level.at)} y2={y(level.at)} />
        <text class="tick" x={width - PAD.right} y={y(level.at) - 4} text-anchor="end">{level.name}</text></g>}
      {lines.map((line, i) => <polyline key={i} class={'line ' + (line.tone ?? '') + (line.dashed ? ' dashed' : '')}
        points={line.points.map(([a, b]) => x(a).toFixed(1) + ',' + y(b).toFixed(1)).join(' ')} />)}
      {lines.filter((line) => line.points.length === 1).map((line, i) => <circle key={i} class="dot" r="3"
        cx={x(line.points[0]![0])} cy={y(line.points[0]![1])} />)}
    </svg>);
}

/** How many values lie in each of some twenty equal ranges. */
export function Histogram({values, label, unit}: {values: readonly number[]; label: string; unit: string}): JSX.Element {
  const [width, height] = [640, 150];
  const low = Math.min(...values), high = Math.max(...values);
  const number = Math.max(1, Math.min(24, Math.ceil(Math.sqrt(values.length)) * 2));
  const counts = new Array<number>(number).fill(0);
  for (const value of values) {
    const at = high === low ? 0 : Math.min(number - 1, Math.floor(number * (value - low) / (high - low)));
    counts[at] = (counts[at] ?? 0) + 1;
  }
  const most = Math.max(...counts);
  const step = (width - PAD.left - PAD.right) / number;
  return (
    <svg class="chart" role="img" aria-label={label} viewBox={`0 0 ${width} ${height}`}>
      <line class="grid" x1={PAD.left} x2={width - PAD.right} y1={height - PAD.bottom} y2={height - PAD.bottom} />
      <text class="tick" x={PAD.left - 6} y={PAD.top + 8} text-anchor="end">{most}</text>
      {counts.map((value, i) => {
        const tall = (height - PAD.top - PAD.bottom) * value / most;
        return <rect key={i} class="column" x={PAD.left + i * step + 1} y={height - PAD.bottom - tall} width={Math.max(1, step - 2)} height={tall} />;
      })}
      <text class="tick" x={PAD.left} y={height - 6}>{digits(low)}</text>
      <text class="tick" x={width - PAD.right} y={height - 6} text-anchor="end">{digits(high) + ' ' + unit}</text>
    </svg>);
}
