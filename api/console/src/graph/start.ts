// The page's policy lets no string become the address of a script; this is the one that does, and it is the program's own.
import workerUrl from './worker.ts?worker&url';

interface Policy { createScriptURL(address: string): string }
interface Factory { createPolicy(name: string, rules: {createScriptURL: (address: string) => string}): Policy }

const factory = (globalThis as {trustedTypes?: Factory}).trustedTypes;
const policy = factory?.createPolicy('tensormill', {
  createScriptURL: (address) => {
    if (address !== workerUrl) throw new TypeError(address);
    return address;
  },
});

export function startWorker(): Worker {
  return new Worker(policy ? policy.createScriptURL(workerUrl) : workerUrl, {type: 'module'});
}
