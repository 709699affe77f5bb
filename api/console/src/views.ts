// Which view an address names. A view of one thing is under the entry of its list.
import type {JSX} from 'preact';
import {Audit} from './views/audit';
import {Compare} from './views/compare';
import {DeploymentView} from './views/deployment';
import {Deployments} from './views/deployments';
import {Health} from './views/health';
import {JobView} from './views/job';
import {Jobs} from './views/jobs';
import {Keys} from './views/keys';
import {ModelView} from './views/model';
import {Models} from './views/models';
import {PackageView} from './views/package';
import {Packages} from './views/packages';
import {Store} from './views/store';
import type {S} from './strings';

type View = (props: {id: string}) => JSX.Element;
export interface Entry { nav: keyof typeof S.nav; all: View; one?: View }

export const views: Record<string, Entry> = {
  models: {nav: 'models', all: Models, one: ModelView},
  jobs: {nav: 'jobs', all: Jobs, one: JobView},
  packages: {nav: 'packages', all: Packages, one: PackageView},
  compare: {nav: 'compare', all: Compare},
  deployments: {nav: 'deployments', all: Deployments, one: DeploymentView},
  store: {nav: 'store', all: Store},
  keys: {nav: 'keys', all: Keys},
  audit: {nav: 'audit', all: Audit},
  health: {nav: 'health', all: Health},
};
