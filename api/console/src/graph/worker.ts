// Places the nodes of a graph beside the page, which stays free. The first answer has all blocks closed; each further one
// is for the blocks that the reader opened.
import type {Net} from './net';
import {type Scene, Scenes} from './scene';

export type Asked = {net: Net} | {open: number[]; turn: number};
export type Told = {blocks: number[]; names: string[]; sizes: number[]} | {scene: Scene; turn: number};

let scenes: Scenes | null = null;

self.onmessage = ({data}: MessageEvent<Asked>) => {
  if ('net' in data) {
    scenes = new Scenes(data.net);
    self.postMessage({blocks: [...scenes.blocks.of], names: scenes.blocks.names, sizes: [...scenes.sizes]} satisfies Told);
    return;
  }
  if (!scenes) return;
  self.postMessage({scene: scenes.scene(new Set(data.open)), turn: data.turn} satisfies Told);
};
