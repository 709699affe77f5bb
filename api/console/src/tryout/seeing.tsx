// A picture as a model's input, with the boxes or masks that come back drawn over it.
import type {JSX} from 'preact';
import {useEffect, useRef, useState} from 'preact/hooks';
import {ms, percent} from '../format';
import {say} from '../notify';
import {S} from '../strings';
import {Field, Form, Table} from '../ui';
import {type NpyArray, readNpz} from './npz';
import {writeNpz} from './npzout';
import {Arrays, type Sent, sendOnce} from './try';
import {type Box, boxesOf, boxMasks, elementsOf, extentsFor, type Mask, maskOf, type PictureInput, SCALES, type Scale} from './vision';

const WIDEST = 640, MOST_ROWS = 100;
const HUES = [210, 25, 135, 285, 60, 0, 175, 320];

const colour = (number: number, alpha: number): string => 'hsl(' + HUES[((number % HUES.length) + HUES.length) % HUES.length] + ' 85% 45% / ' + alpha + ')';

interface Seen { picture: ImageBitmap; arrays: NpyArray[]; boxes: Box[] | null; masks: Mask[]; words: string }

/** The picture at the extents that the model takes, four bytes a point. */
function pixelsOf(picture: ImageBitmap, width: number, height: number): Uint8ClampedArray {
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext('2d')!;
  context.drawImage(picture, 0, 0, width, height);
  return context.getImageData(0, 0, width, height).data;
}

function drawMask(context: CanvasRenderingContext2D, mask: Mask, number: number | null): void {
  const canvas = new OffscreenCanvas(mask.width, mask.height);
  const inner = canvas.getContext('2d')!;
  const classes = new Set(mask.classes);
  classes.delete(0);
  for (const one of classes) {
    inner.fillStyle = colour(number ?? one, 0.5);
    for (let y = 0; y < mask.height; ++y) {
      // Runs of equal points are one rectangle.
      for (let x = 0; x < mask.width;) {
        let end = x;
        while (end < mask.width && mask.classes[y * mask.width + end] === one) ++end;
        if (end > x) inner.fillRect(x, y, end - x, 1);
        x = end + 1;
      }
    }
  }
  context.drawImage(canvas, 0, 0, context.canvas.width, context.canvas.height);
}

function drawBox(context: CanvasRenderingContext2D, box: Box): void {
  const {width, height} = context.canvas;
  const number = Number.parseInt(box.label, 10) || 0;
  const [x, y, w, h] = [box.left * width, box.top * height, (box.right - box.left) * width, (box.bottom - box.top) * height];
  context.lineWidth = 2;
  context.strokeStyle = colour(number, 1);
  context.strokeRect(x, y, w, h);
  const words = (box.label ? box.label + ' ' : '') + percent(box.score);
  context.font = '12px sans-serif';
  const wide = context.measureText(words).width + 8, top = Math.max(0, y - 16);
  context.fillStyle = colour(number, 1);
  context.fillRect(x, top, wide, 16);
  context.fillStyle = '#fff';
  context.fillText(words, x + 4, top + 12);
}

/** Shown boxes have at least the score that the reader wants. */
function paint(canvas: HTMLCanvasElement, seen: Seen, least: number): void {
  // A small picture is shown larger, point by point.
  const scale = seen.picture.width < 160 ? Math.floor(320 / seen.picture.width) : Math.min(1, WIDEST / seen.picture.width);
  canvas.width = Math.max(1, Math.round(seen.picture.width * scale));
  canvas.height = Math.max(1, Math.round(seen.picture.height * scale));
  const context = canvas.getContext('2d')!;
  context.imageSmoothingEnabled = scale < 1;
  context.drawImage(seen.picture, 0, 0, canvas.width, canvas.height);
  const boxes = (seen.boxes ?? []).filter((box) => box.score >= least);
  seen.masks.forEach((mask, i) => {
    if (!seen.boxes) drawMask(context, mask, null);
    else if (boxes.some((box) => box.at === i)) drawMask(context, mask, i);
  });
  boxes.forEach((box) => drawBox(context, box));
  canvas.dataset['boxes'] = String(boxes.length);
  canvas.dataset['masks'] = String(seen.boxes ? Math.min(seen.masks.length, boxes.length) : seen.masks.length);
}

export function VisionForm({path, input, sent}: {path: string; input: PictureInput; sent: (sent: Sent) => void}): JSX.Element {
  const [seen, setSeen] = useState<Seen | null>(null);
  const [least, setLeast] = useState(0.5);
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => { if (canvas.current && seen) paint(canvas.current, seen, least); }, [seen, least]);
  const run = async (form: FormData) => {
    const picture = await createImageBitmap(form.get('seen') as File);
    const [width, height] = extentsFor(input, picture.width, picture.height);
    const values = elementsOf(pixelsOf(picture, width, height), width * height, input, form.get('scale') as Scale);
    const shape = [...(input.batched ? [1] : []), ...(input.first ? [input.channels, height, width] : [height, width, input.channels])];
    const once: Sent = {body: writeNpz(input.name, values, shape), done: {method: 'POST', path, type: 'application/x-npz', accept: 'application/x-npz', file: 'picture.npz'}};
    const {response, timed} = await sendOnce(once);
    const arrays = await readNpz(await response.arrayBuffer());
    const boxes = boxesOf(arrays, width, height);
    const mask = boxes ? null : maskOf(arrays, input.first);
    const masks = boxes ? boxMasks(arrays, boxes) : mask ? [mask] : [];
    const words = (boxes ? S.vision.boxes(boxes.length) : mask ? S.vision.mask(new Set(mask.classes).size) : S.vision.neither) + ' ' + S.tryout.took(ms(timed.total), ms(timed.compute));
    setSeen({picture, arrays, boxes, masks, words});
    say(words);
    sent(once);
  };
  const shown = (seen?.boxes ?? []).filter((box) => box.score >= least).sort((a, b) => b.score - a.score);
  return (
    <Form id="vision" title={S.vision.title} submit={S.tryout.run} work={run}>
      <p class="hint">{S.vision.hint}</p>
      <Field label={S.tryout.file}><input type="file" name="seen" accept="image/jpeg,image/png" required /></Field>
      {input.dtype === 'float32' && <Field label={S.vision.scale}><select name="scale">{SCALES.map((name) => <option key={name} value={name}>{S.vision.scales[name]}</option>)}</select></Field>}
      {seen?.boxes && <Field label={S.vision.least}><input type="number" min="0" max="1" step="0.05" value={least} onInput={(event) => setLeast(Number(event.currentTarget.value))} /></Field>}
      {seen && <div class="answer" aria-live="polite"><p>{seen.words}</p>
        <div class="pictured"><canvas ref={canvas} role="img" aria-label={seen.words} /></div>
        {shown.length > 0 && <Table label={S.vision.found} rows={shown.slice(0, MOST_ROWS)} keyOf={(box) => String(box.at)} columns={[
          {title: S.tryout.label, cell: (box) => box.label || '—'},
          {title: S.vision.score, numeric: true, cell: (box) => percent(box.score)},
          {title: S.vision.place, cell: (box) => [box.left, box.top, box.right, box.bottom].map(percent).join(', ')},
        ]} />}
        {!seen.boxes && <Arrays arrays={seen.arrays} label={S.vision.outputs} />}</div>}
    </Form>);
}
