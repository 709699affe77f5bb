// Draws what is seen of a scene on a canvas: boxes and lines are found by bands of their height, so what is outside the
// view costs nothing.
import {CLOSED, NODE, OPEN, type Scene} from './scene';

export interface View { scale: number; x: number; y: number }
export interface Look { label: (kind: number, ref: number) => string; sub: (kind: number, ref: number) => string; tone: (kind: number, ref: number) => string;
  heat: (kind: number, ref: number) => number | null; chosen: (kind: number, ref: number) => 0 | 1 | 2; bad: (kind: number, ref: number) => boolean }
export interface Colors { text: string; soft: string; line: string; card: string; back: string; accent: string; tint: string; hot: string; bad: string }

const BAND = 600;

export interface Bands { boxes: Int32Array[]; lines: Int32Array[]; low: Float32Array; high: Float32Array }

export function bandsOf(scene: Scene): Bands {
  const number = Math.max(1, Math.ceil((scene.height + 1) / BAND));
  const boxes: number[][] = Array.from({length: number}, () => []), lines: number[][] = Array.from({length: number}, () => []);
  const into = (bands: number[][], low: number, high: number, item: number) => {
    for (let band = Math.max(0, Math.floor(low / BAND)); band <= Math.min(number - 1, Math.floor(high / BAND)); ++band) bands[band]!.push(item);
  };
  scene.x.forEach((_, i) => into(boxes, scene.y[i]!, scene.y[i]! + scene.h[i]!, i));
  const total = scene.starts.length - 1;
  const low = new Float32Array(total), high = new Float32Array(total);
  for (let i = 0; i < total; ++i) {
    let least = Infinity, most = -Infinity;
    for (let k = scene.starts[i]! + 1; k < scene.starts[i + 1]!; k += 2) {
      least = Math.min(least, scene.points[k]!);
      most = Math.max(most, scene.points[k]!);
    }
    low[i] = least;
    high[i] = most;
    into(lines, least, most, i);
  }
  return {boxes: boxes.map((band) => Int32Array.from(band)), lines: lines.map((band) => Int32Array.from(band)), low, high};
}

export function colorsOf(element: Element): Colors {
  // The page's colours are pairs for light and dark; only a used value tells which.
  const probe = document.createElement('span');
  element.append(probe);
  const used = (name: string) => {
    probe.style.color = 'var(' + name + ')';
    return getComputedStyle(probe).color;
  };
  const colors = {text: used('--text'), soft: used('--soft'), line: used('--line'), card: used('--card'), back: used('--back'),
    accent: used('--accent'), tint: used('--tint'), hot: '#d9601a', bad: used('--bad')};
  probe.remove();
  return colors;
}

export function draw(canvas: HTMLCanvasElement, scene: Scene, bands: Bands, view: View, look: Look, colors: Colors): void {
  const context = canvas.getContext('2d')!;
  const ratio = canvas.width / Math.max(1, canvas.clientWidth);
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.setTransform(view.scale * ratio, 0, 0, view.scale * ratio, view.x * ratio, view.y * ratio);
  const left = -view.x / view.scale, right = left + canvas.clientWidth / view.scale;
  const top = -view.y / view.scale, bottom = top + canvas.clientHeight / view.scale;
  const first = Math.max(0, Math.floor(top / BAND)), last = Math.min(bands.boxes.length - 1, Math.floor(bottom / BAND));
  const seen = (i: number) => scene.x[i]! < right && scene.x[i]! + scene.w[i]! > left && scene.y[i]! < bottom && scene.y[i]! + scene.h[i]! > top;
  const each = (lists: Int32Array[], topOf: (i: number) => number, use: (i: number) => void) => {
    for (let band = first; band <= last; ++band)
      for (const i of lists[band]!) if (band === first || Math.floor(topOf(i) / BAND) === band) use(i);
  };
  const boxes: number[] = [];
  each(bands.boxes, (i) => scene.y[i]!, (i) => { if (seen(i)) boxes.push(i); });
  // A box in two bands comes with the first of them; open blocks have the lower numbers and lie below what is in them.
  boxes.sort((a, b) => a - b);
  for (const i of boxes) if (scene.kind[i] === OPEN) frame(context, scene, i, view, look, colors);
  context.strokeStyle = colors.soft;
  context.globalAlpha = view.scale < 0.2 ? 0.45 : 0.7;
  context.lineWidth = Math.max(1, 0.8 / view.scale);
  context.beginPath();
  each(bands.lines, (i) => Math.max(0, bands.low[i]!), (i) => line(context, scene, i, view.scale));
  context.stroke();
  context.globalAlpha = 1;
  for (const i of boxes) if (scene.kind[i] !== OPEN) box(context, scene, i, view, look, colors);
}

function line(context: CanvasRenderingContext2D, scene: Scene, i: number, scale: number): void {
  const {points} = scene;
  const start = scene.starts[i]!, end = scene.starts[i + 1]!;
  context.moveTo(points[start]!, points[start + 1]!);
  for (let k = start + 2; k < end; k += 2) {
    const [x0, y0, x1, y1] = [points[k - 2]!, points[k - 1]!, points[k]!, points[k + 1]!];
    if (scale < 0.25 || x0 === x1) context.lineTo(x1, y1);
    else context.bezierCurveTo(x0, (y0 + y1) / 2, x1, (y0 + y1) / 2, x1, y1);
  }
}

function frame(context: CanvasRenderingContext2D, scene: Scene, i: number, view: View, look: Look, colors: Colors): void {
  const [x, y, w, h] = [scene.x[i]!, scene.y[i]!, scene.w[i]!, scene.h[i]!];
  context.fillStyle = colors.back;
  context.strokeStyle = colors.line;
  context.lineWidth = Math.max(1, 1 / view.scale);
  context.beginPath();
  context.roundRect(x, y, w, h, 12);
  context.fill();
  context.stroke();
  if (view.scale < 0.3) return;
  context.fillStyle = colors.soft;
  context.font = '600 12px system-ui, sans-serif';
  context.textAlign = 'left';
  context.fillText(clip(look.label(OPEN, scene.ref[i]!), Math.floor(w / 7)), x + 12, y + 18);
}

const clip = (text: string, letters: number): string => (text.length > letters ? text.slice(0, Math.max(1, letters - 1)) + '…' : text);

function box(context: CanvasRenderingContext2D, scene: Scene, i: number, view: View, look: Look, colors: Colors): void {
  const [kind, ref, x, y, w, h] = [scene.kind[i]!, scene.ref[i]!, scene.x[i]!, scene.y[i]!, scene.w[i]!, scene.h[i]!];
  const heat = look.heat(kind, ref), chosen = look.chosen(kind, ref), bad = look.bad(kind, ref);
  if (view.scale < 0.25) {
    context.fillStyle = bad ? colors.bad : chosen ? colors.accent : look.tone(kind, ref);
    if (heat !== null) {
      context.globalAlpha = 0.15 + 0.85 * heat;
      context.fillStyle = chosen ? colors.accent : colors.hot;
    }
    context.fillRect(x, y, w, h);
    context.globalAlpha = 1;
    return;
  }
  context.beginPath();
  context.roundRect(x, y, w, h, kind === NODE ? 7 : 11);
  context.fillStyle = kind === NODE ? colors.card : colors.tint;
  context.fill();
  if (heat !== null) {
    context.globalAlpha = 0.08 + 0.62 * heat;
    context.fillStyle = colors.hot;
    context.fill();
    context.globalAlpha = 1;
  }
  if (bad) {
    context.globalAlpha = 0.25;
    context.fillStyle = colors.bad;
    context.fill();
    context.globalAlpha = 1;
  }
  context.lineWidth = chosen === 1 || bad ? 3 : chosen === 2 ? 2.4 : 1;
  context.strokeStyle = bad ? colors.bad : chosen ? colors.accent : kind === CLOSED ? colors.soft : colors.line;
  if (chosen === 2) context.setLineDash([5, 3]);
  context.stroke();
  context.setLineDash([]);
  if (kind === NODE) {
    context.fillStyle = bad ? colors.bad : look.tone(kind, ref);
    context.beginPath();
    context.roundRect(x, y, 5, h, [7, 0, 0, 7]);
    context.fill();
  }
  context.textAlign = 'center';
  context.fillStyle = colors.text;
  context.font = '600 13px system-ui, sans-serif';
  context.fillText(clip(look.label(kind, ref), Math.floor(w / 7.2)), x + w / 2, y + h / 2 - 4);
  context.fillStyle = heat !== null || bad ? colors.text : colors.soft;
  context.font = '11px system-ui, sans-serif';
  context.fillText(clip(look.sub(kind, ref), Math.floor(w / 5.8)), x + w / 2, y + h / 2 + 12);
}

/** The box at a point, those in blocks before the blocks; -1 where there is none. */
export function hit(scene: Scene, bands: Bands, x: number, y: number): number {
  const band = bands.boxes[Math.floor(y / BAND)];
  if (!band) return -1;
  for (let k = band.length - 1; k >= 0; --k) {
    const i = band[k]!;
    if (x >= scene.x[i]! && x <= scene.x[i]! + scene.w[i]! && y >= scene.y[i]! && y <= scene.y[i]! + scene.h[i]!) return i;
  }
  return -1;
}
