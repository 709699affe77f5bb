// Health: whether the process takes requests, what machine it runs on, and which walls stand around its children.
import type {JSX} from 'preact';
import {bytes, count} from '../format';
import {useGet, useLoad} from '../load';
import {S} from '../strings';
import type {Info} from '../types';
import {Facts, Loading, State} from '../ui';

interface Ready { ready: boolean; reason: string }

export function Health(): JSX.Element {
  const {data: ready} = useLoad<Ready>('ready', async (signal) => (await fetch('/readyz', {signal})).json() as Promise<Ready>, 4000);
  const {data: info} = useGet<Info>('/v1/info');
  if (!info) return <><h1>{S.nav.health}</h1><Loading /></>;
  const walls = info.confinement;
  const limits = Object.entries(info.limits).sort(([a], [b]) => (a < b ? -1 : 1));
  return (
    <>
      <h1>{S.nav.health}</h1>
      <Facts rows={[
        [S.health.requests, ready ? <><State state={ready.ready ? 'ready' : 'failed'} /> {ready.reason}</> : '…'],
        [S.health.version, info.version], [S.health.compiler, info.compiler.id],
        [S.health.cpu, info.host.cpu + ', ' + S.cores(info.host.cores)],
        [S.health.features, <code>{info.host.features.map((name) => name.replace(/^\+/, '')).join(' ')}</code>],
        [S.health.formats, info.model_formats.join(', ')],
        [S.health.walls, S.health.wallWords(walls.seccomp, walls.landlock_abi, walls.required)],
        [S.health.childMemory, walls.memory],
      ]} />
      <h2>{S.health.limits}</h2>
      <Facts rows={limits.map(([name, value]): [string, string] =>
        [name, value === 0 ? S.health.noLimit : /bytes|memory/.test(name) ? bytes(value) : count(value)])} />
    </>);
}
