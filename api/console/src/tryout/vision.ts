// What models that see give, and what they take: a picture as a tensor; boxes and masks in the forms that detectors and segmenting
// networks have. Pure functions.
import type {TensorSpec} from '../types';
import type {NpyArray} from './npz';

export const SCALES = ['unit', 'imagenet', 'bytes'] as const;
export type Scale = (typeof SCALES)[number];

/** An input that takes a picture: where its channels are, and the extents that are fixed. */
export interface PictureInput { name: string; dtype: 'float32' | 'uint8'; channels: 1 | 3; first: boolean; batched: boolean; width: number | null; height: number | null }

const fixed = (dim: number | string | undefined): number | null => (typeof dim === 'number' && dim >= 0 ? dim : null);

/** Of a model whose one input is a picture; null for all others. */
export function pictureInput(inputs: readonly TensorSpec[]): PictureInput | null {
  const [input] = inputs;
  if (inputs.length !== 1 || !input || (input.dtype !== 'float32' && input.dtype !== 'uint8')) return null;
  const batched = input.shape.length === 4;
  if (!batched && input.shape.length !== 3) return null;
  if (batched && (fixed(input.shape[0]) ?? 1) !== 1) return null;
  const [a, b, c] = input.shape.slice(-3);
  const isChannels = (dim: number | string | undefined): dim is 1 | 3 => dim === 1 || dim === 3;
  const base = {name: input.name, dtype: input.dtype as 'float32' | 'uint8', batched};
  if (isChannels(a)) return {...base, channels: a, first: true, height: fixed(b), width: fixed(c)};
  if (isChannels(c)) return {...base, channels: c, first: false, height: fixed(a), width: fixed(b)};
  return null;
}

const LONGEST = 640, STEP = 32;

/** The extents that a picture gets: the model's, or its own, as multiples of what strides usually need. */
export function extentsFor(input: PictureInput, width: number, height: number): [number, number] {
  const scale = Math.min(1, LONGEST / Math.max(width, height));
  const near = (extent: number) => Math.max(STEP, Math.round(extent * scale / STEP) * STEP);
  return [input.width ?? near(width), input.height ?? near(height)];
}

const MEAN = [0.485, 0.456, 0.406], DEVIATION = [0.229, 0.224, 0.225];

/** Pixels (four bytes each) as the input's elements. */
export function elementsOf(pixels: Uint8ClampedArray, count: number, input: PictureInput, scale: Scale): Float32Array | Uint8Array {
  const {channels, first} = input;
  const values = input.dtype === 'uint8' ? new Uint8Array(count * channels) : new Float32Array(count * channels);
  for (let i = 0; i < count; ++i) {
    const [red, green, blue] = [pixels[4 * i]!, pixels[4 * i + 1]!, pixels[4 * i + 2]!];
    const of = channels === 1 ? [0.299 * red + 0.587 * green + 0.114 * blue] : [red, green, blue];
    of.forEach((value, c) => {
      const scaled = input.dtype === 'uint8' || scale === 'bytes' ? value : scale === 'unit' ? value / 255 : (value / 255 - MEAN[c]!) / DEVIATION[c]!;
      values[first ? c * count + i : i * channels + c] = scaled;
    });
  }
  return values;
}

/** In parts of the picture's sides; `at` is the row in the outputs. */
export interface Box { at: number; left: number; top: number; right: number; bottom: number; score: number; label: string }

const numberAt = (array: NpyArray, i: number): number => Number(array.values[i]);
const isWhole = (array: NpyArray): boolean => /^u?int/.test(array.dtype);

/** Extents without a first one of 1. */
const inner = (array: NpyArray): number[] => (array.shape.length > 1 && array.shape[0] === 1 ? array.shape.slice(1) : array.shape);

function all(array: NpyArray, holds: (value: number) => boolean): boolean {
  for (let i = 0; i < array.values.length; ++i) if (!holds(numberAt(array, i))) return false;
  return true;
}

/** Corners as parts of the sides: those of a picture of `width` by `height` unless all lie within 0 and about 1. */
function corners(values: number[], width: number, height: number, areParts: boolean, yFirst: boolean): Omit<Box, 'at' | 'score' | 'label'> {
  const [a, b, c, d] = yFirst ? [values[1]!, values[0]!, values[3]!, values[2]!] : [values[0]!, values[1]!, values[2]!, values[3]!];
  return areParts ? {left: a, top: b, right: c, bottom: d} : {left: a / width, top: b / height, right: c / width, bottom: d / height};
}

/** Boxes, scores and labels as outputs of their own: torchvision, the ONNX model zoo, TensorFlow. */
function separateBoxes(arrays: readonly NpyArray[], width: number, height: number): Box[] | null {
  const boxes = arrays.find((array) => inner(array).length === 2 && inner(array)[1] === 4 && !isWhole(array));
  if (!boxes) return null;
  const rows = inner(boxes)[0]!;
  const columns = arrays.filter((array) => array !== boxes && inner(array).length === 1 && inner(array)[0] === rows);
  const named = (pattern: RegExp) => columns.find((array) => pattern.test(array.name));
  const scores = named(/score|conf|prob/i) ?? columns.find((array) => !isWhole(array) && all(array, (value) => value >= 0 && value <= 1));
  if (!scores) return null;
  const labels = named(/label|class|categor/i) ?? columns.find((array) => array !== scores && isWhole(array));
  const areParts = all(boxes, (value) => value > -0.5 && value < 1.5), yFirst = /detection_boxes/.test(boxes.name);
  return Array.from({length: rows}, (_, at) => ({at, score: numberAt(scores, at), label: labels ? String(labels.values[at]) : '',
    ...corners([0, 1, 2, 3].map((i) => numberAt(boxes, 4 * at + i)), width, height, areParts, yFirst)}));
}

/** A row a box, after suppression: x, y, x, y, score, class; or, with the picture's number before them, class and score behind. */
function rowBoxes(arrays: readonly NpyArray[], width: number, height: number): Box[] | null {
  const array = arrays.find((one) => inner(one).length === 2 && (inner(one)[1] === 6 || inner(one)[1] === 7) && !isWhole(one));
  if (!array) return null;
  const [rows, size] = inner(array) as [number, number];
  const first = size - 6, [score, label] = size === 6 ? [4, 5] : [6, 5];
  const row = (at: number) => Array.from({length: size}, (_, i) => numberAt(array, at * size + i));
  const list = Array.from({length: rows}, (_, at) => row(at));
  const isBox = (one: number[]) => one[score]! >= 0 && one[score]! <= 1 && one[first + 2]! >= one[first]! && one[first + 3]! >= one[first + 1]!;
  if (!list.every(isBox)) return null;
  const areParts = list.every((one) => one.slice(first, first + 4).every((value) => value > -0.5 && value < 1.5));
  return list.map((one, at) => ({at, score: one[score]!, label: String(one[label]!), ...corners(one.slice(first, first + 4), width, height, areParts, false)}));
}

/** Null where the outputs are no boxes. `width` and `height` are the input's. */
export function boxesOf(arrays: readonly NpyArray[], width: number, height: number): Box[] | null {
  return separateBoxes(arrays, width, height) ?? rowBoxes(arrays, width, height);
}

/** For each point the class (0: none), of `width` by `height` points. */
export interface Mask { width: number; height: number; classes: Int32Array }

const LEAST_SIDE = 8;

/** Class by class scores, one map of logits or probabilities, or the classes themselves; null where no output is such. */
export function maskOf(arrays: readonly NpyArray[], first: boolean): Mask | null {
  for (const array of arrays) {
    const extents = inner(array);
    const isMap = array.shape.length >= 3 && array.shape[0] === 1;
    if (isMap && extents.length === 2 && extents.every((extent) => extent >= LEAST_SIDE)) return points(array, extents[0]!, extents[1]!, 1, first);
    if (isMap && extents.length === 3) {
      const [channels, height, width] = first ? extents as [number, number, number] : [extents[2]!, extents[0]!, extents[1]!];
      if (height >= LEAST_SIDE && width >= LEAST_SIDE && channels <= 512) return points(array, height, width, channels, first);
    }
  }
  return null;
}

function points(array: NpyArray, height: number, width: number, channels: number, first: boolean): Mask {
  const classes = new Int32Array(width * height);
  const step = first ? width * height : 1, base = first ? 1 : channels;
  const level = all(array, (value) => value >= 0) ? 0.5 : 0;
  for (let i = 0; i < classes.length; ++i) {
    if (channels === 1) {
      const value = numberAt(array, i);
      classes[i] = isWhole(array) || array.dtype === 'bool' ? value : value > level ? 1 : 0;
      continue;
    }
    let best = 0;
    for (let c = 1; c < channels; ++c) if (numberAt(array, i * base + c * step) > numberAt(array, i * base + best * step)) best = c;
    classes[i] = best;
  }
  return {width, height, classes};
}

/** The mask of each box, where an output has one of the picture's size for each: points above a half. */
export function boxMasks(arrays: readonly NpyArray[], boxes: readonly Box[]): Mask[] {
  const array = arrays.find((one) => one.shape.length >= 3 && one.shape[0] === boxes.length && one.shape.slice(-2).every((extent) => extent >= LEAST_SIDE)
    && (one.shape.length === 3 || (one.shape.length === 4 && one.shape[1] === 1)));
  if (!array || boxes.length === 0) return [];
  const [height, width] = array.shape.slice(-2) as [number, number];
  return boxes.map(({at}) => ({width, height, classes: Int32Array.from({length: width * height}, (_, i) => (numberAt(array, at * width * height + i) > 0.5 ? at + 1 : 0))}));
}
