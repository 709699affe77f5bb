// A picture from a file, by drag, from the clipboard, or, only when it is asked for, from the camera.
import type {JSX} from 'preact';
import {useEffect, useRef, useState} from 'preact/hooks';
import {useDrops} from '../drop';
import {ms, percent} from '../format';
import {request} from '../http';
import {attempt, say} from '../notify';
import {S} from '../strings';
import type {Classification} from '../types';
import {Action, Table} from '../ui';
import type {Sent} from './try';
import {sendOnce} from './try';

const isPicture = (file: File): boolean => /^image\/(png|jpeg)$/.test(file.type);

/** Draws on a canvas: a picture's bytes never become an address that the page's policy would have to allow. */
async function draw(canvas: HTMLCanvasElement | null, picture: Blob): Promise<void> {
  if (!canvas) return;
  const bitmap = await createImageBitmap(picture);
  const scale = Math.min(1, 320 / Math.max(bitmap.width, bitmap.height)) * (bitmap.width < 80 ? Math.floor(160 / bitmap.width) : 1);
  canvas.width = Math.round(bitmap.width * scale);
  canvas.height = Math.round(bitmap.height * scale);
  const context = canvas.getContext('2d')!;
  context.imageSmoothingEnabled = scale <= 1;
  context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  bitmap.close();
}

export function PictureForm({path, sent}: {path: string; sent: (sent: Sent) => void}): JSX.Element {
  const [picture, setPicture] = useState<File | null>(null);
  const [answer, setAnswer] = useState<Classification | null>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [busy, setBusy] = useState(false);
  const take = (file: File) => {
    setPicture(file);
    setAnswer(null);
    void attempt(() => draw(canvas.current, file));
  };
  const classify = async (file: File) => {
    setBusy(true);
    await attempt(async () => {
      const once: Sent = {body: file, done: {method: 'POST', path, type: file.type, accept: 'application/json', file: file.name}};
      const {response} = await sendOnce(once);
      const found = await response.json() as Classification;
      setAnswer(found);
      sent(once);
      const [best] = found.top;
      if (best) say(S.tryout.best(best.label || String(best.index), percent(Number(best.probability))));
    });
    setBusy(false);
  };
  const both = (file: File) => {
    take(file);
    void classify(file);
  };
  useDrops((file) => {
    if (!isPicture(file)) return false;
    both(file);
    return true;
  });
  useEffect(() => {
    const pasted = (event: ClipboardEvent) => {
      const file = [...(event.clipboardData?.files ?? [])].find(isPicture);
      if (!file) return;
      event.preventDefault();
      both(file);
    };
    window.addEventListener('paste', pasted);
    return () => window.removeEventListener('paste', pasted);
  });
  const sample = async () => {
    const blob = await (await request('GET', '/console/sample.png')).blob();
    both(new File([blob], 'sample.png', {type: 'image/png'}));
  };
  const submitted = (event: Event) => {
    event.preventDefault();
    if (picture) void classify(picture);
  };
  return (
    <form id="classify" class="panel" onSubmit={submitted} aria-labelledby="classify-title">
      <h2 id="classify-title">{S.tryout.picture}</h2>
      <p class="hint">{S.tryout.pictureHint}</p>
      <label class="field"><span>{S.tryout.file}</span><input type="file" accept="image/jpeg,image/png" name="picture" required={!picture}
        onChange={(event) => { const file = event.currentTarget.files?.[0]; if (file) take(file); }} /></label>
      <p class="actions"><button class="primary" disabled={busy}>{S.tryout.classify}</button>
        <Action kind="quiet" work={sample}>{S.tryout.sample}</Action><Camera take={both} /></p>
      <div class="pictured">
        <canvas ref={canvas} role="img" aria-label={picture ? S.tryout.shown(picture.name) : S.tryout.noPicture} width={0} height={0} />
        <div aria-live="polite">{answer && <Top answer={answer} />}</div>
      </div>
    </form>);
}

function Top({answer}: {answer: Classification}): JSX.Element {
  const {timing} = answer;
  return (
    <>
      <Table label={S.tryout.top} rows={answer.top} keyOf={(row) => String(row.index)} columns={[
        {title: S.tryout.label, cell: (row) => row.label || String(row.index)},
        {title: S.tryout.probability, numeric: true, cell: (row) => percent(Number(row.probability))},
        {title: S.columns.share, cell: (row) => <meter min={0} max={1} value={Number(row.probability) || 0} aria-label={S.tryout.probability} />},
      ]} />
      <p class="hint">{S.tryout.timing(ms(timing.decode_ms), ms(timing.queue_ms), ms(timing.compute_ms))}</p>
    </>);
}

/** The camera is asked for when its button is pressed, and is off again as soon as the picture is taken. */
function Camera({take}: {take: (file: File) => void}): JSX.Element {
  const [stream, setStream] = useState<MediaStream | null>(null);
  const video = useRef<HTMLVideoElement>(null);
  const stop = () => {
    stream?.getTracks().forEach((track) => track.stop());
    setStream(null);
  };
  useEffect(() => {
    if (video.current && stream) video.current.srcObject = stream;
    return () => stream?.getTracks().forEach((track) => track.stop());
  }, [stream]);
  const start = async () => {
    if (!navigator.mediaDevices) throw new Error(S.tryout.noCamera);
    setStream(await navigator.mediaDevices.getUserMedia({video: true}));
  };
  const shoot = async () => {
    const shown = video.current!;
    const canvas = document.createElement('canvas');
    canvas.width = shown.videoWidth;
    canvas.height = shown.videoHeight;
    canvas.getContext('2d')!.drawImage(shown, 0, 0);
    stop();
    const blob = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, 'image/jpeg', 0.92));
    if (blob) take(new File([blob], 'camera.jpg', {type: 'image/jpeg'}));
  };
  if (!stream) return <Action kind="quiet" work={start}>{S.tryout.camera}</Action>;
  return <span class="camera"><video ref={video} autoplay muted playsInline aria-label={S.tryout.camera} />
    <Action kind="primary" work={shoot}>{S.tryout.shoot}</Action><button type="button" class="quiet" onClick={stop}>{S.close}</button></span>;
}
