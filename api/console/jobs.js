'use strict';
// Jobs: the list, and one job as it goes on.

async function showJobs(page) {
  const jobs = (await get('/v1/jobs?limit=50')).items;
  page.replaceChildren(el('h2', {}, 'Jobs'), table(['job', 'kind', 'state', 'progress', 'created', 'result'],
    jobs.map((job) => [el('a', {href: '#jobs/' + job.id}, el('code', {}, job.id.slice(0, 13))), job.kind,
      el('span', {class: job.state}, job.state), progressText(job.progress), time(job.created_at),
      job.error ? job.error.detail : job.result && job.result.package ? idText(job.result.package) : '']),
    'No job yet: open a model to compile or tune it.'));
}

function progressText(progress) {
  if (!progress || !progress.stage) return '';
  const count = progress.total > 1 ? ' ' + progress.done + '/' + progress.total : '';
  const best = typeof progress.best_ms === 'number' ? ', ' + ms(progress.best_ms) : '';
  const left = typeof progress.eta_s === 'number' ? ', ' + Math.ceil(progress.eta_s) + ' s left' : '';
  return progress.stage + count + best + left;
}

/** One job, live: the page follows its events until its end, or until another page is shown. */
async function showJob(page, id, signal) {
  let job = await get('/v1/jobs/' + id);
  const head = el('div', {}), live = el('div', {}), end = el('div', {});
  const log = el('pre', {});
  const view = {progress: job.progress || {}, tasks: new Map(), best: []};
  page.replaceChildren(head, live, end, el('details', {ontoggle: async (event) => {
    if (event.currentTarget.open)
      await attempt(async () => { log.textContent = await (await request('GET', '/v1/jobs/' + id + '/log')).text(); });
  }}, el('summary', {}, 'Log'), log));
  const draw = () => {
    head.replaceChildren(...jobHead(job));
    live.replaceChildren(...jobProgress(job, view));
    end.replaceChildren(...jobEnd(job));
  };
  draw();
  await events('/v1/jobs/' + id + '/events', signal, (event, data) => {
    if (event === 'state') {
      job = {...job, state: data.state, attempt: data.attempt};
    } else if (event === 'progress') {
      view.progress = data;
      for (const task of data.tasks || []) view.tasks.set(task.task, task);
      // The estimate is whole when every kernel has been measured once.
      const isWhole = [...view.tasks.values()].every((task) => isMeasured(task, view.tasks));
      if (isWhole && typeof data.best_ms === 'number') view.best.push([data.done, data.best_ms]);
    }
    draw();
  });
  if (signal.aborted) return;
  job = await get('/v1/jobs/' + id);
  draw();
}

const isOver = (job) => ['succeeded', 'failed', 'cancelled'].includes(job.state);

function jobHead(job) {
  const can = {
    Cancel: !isOver(job) && (() => send('POST', '/v1/jobs/' + job.id + '/cancel')),
    'Run again': ['failed', 'cancelled'].includes(job.state) && (async () => {
      await send('POST', '/v1/jobs/' + job.id + '/retry');
      await show();
    }),
  };
  const buttons = Object.entries(can).filter(([, work]) => work).map(([label, work]) => action(label, work));
  const facts = job.resolved && (job.resolved.compile || job.resolved);
  return [el('h2', {}, 'Job ', el('code', {}, job.id)),
    el('p', {}, job.kind + ' · ', el('span', {class: job.state}, job.state), ' · attempt ' + job.attempt, ' ', ...buttons),
    facts && facts.model ? el('p', {}, 'model ', el('a', {href: '#models/' + facts.model}, idText(facts.model)), ' for ', el('code', {}, facts.target)) : ''];
}

/** Of the algorithms of a layer one is enough for the model's time. */
function isMeasured(task, tasks) {
  const stands = [...tasks.values()].filter((other) => other === task || (task.layer && other.layer === task.layer));
  return stands.some((one) => typeof one.best_ms === 'number');
}

function jobProgress(job, view) {
  const {progress} = view;
  const parts = isOver(job) ? [] : [el('p', {}, el('progress', {max: Math.max(progress.total || 1, 1), value: progress.done || 0,
    'aria-label': 'progress'}), ' ', progressText(progress))];
  if (view.best.length > 1) parts.push(bestChart(view.best));
  const tasks = job.result && job.result.tasks ? job.result.tasks : [...view.tasks.values()];
  if (tasks.length > 0) parts.push(taskTable(tasks));
  return parts;
}

function taskTable(tasks) {
  const failures = (task) => Object.entries(task.failures || {}).map(([cause, count]) => cause + ' × ' + count).join(', ');
  return table(['kernel', 'algorithm', 'calls', 'trials', 'default', 'best', 'GFLOP/s', 'failed'], tasks.map((task) =>
    [task.name, task.algorithm || '—', task.calls, task.reused ? 'reused' : task.trials, ms(task.default_ms), ms(task.best_ms),
      typeof task.gflops === 'number' ? task.gflops.toFixed(1) : '—', failures(task)].map(
      (cell) => (typeof cell === 'number' ? String(cell) : cell))), '');
}

/** The model's estimated time over the trials; at the end the best of each kernel are measured again. */
function bestChart(points) {
  const [width, height, pad] = [640, 120, 8];
  const trials = points.map(([trial]) => trial);
  const [first, last] = [Math.min(...trials), Math.max(...trials)];
  const times = points.map(([, best]) => best);
  const [low, high] = [Math.min(...times), Math.max(...times)];
  const x = (trial) => pad + (width - 2 * pad) * (trial - first) / Math.max(last - first, 1);
  const y = (best) => pad + (height - 2 * pad) * (high === low ? 0.5 : (high - best) / (high - low));
  const picture = document.getElementById('chart').content.firstElementChild.cloneNode(true);
  picture.setAttribute('viewBox', '0 0 ' + width + ' ' + height);
  picture.setAttribute('aria-label', 'estimated time of the model from ' + ms(high) + ' to ' + ms(low));
  picture.firstElementChild.setAttribute('points', points.map(([trial, best]) => x(trial) + ',' + y(best)).join(' '));
  return el('figure', {}, picture, el('figcaption', {}, 'estimated time of the model: ' + ms(times[0]) + ' → ' +
    ms(times[times.length - 1]) + ' in ' + last + ' trials'));
}

function jobEnd(job) {
  if (job.error)
    return [el('p', {class: 'failed'}, job.error.detail),
      el('ul', {}, (job.error.errors || []).map((error) => el('li', {}, (error.pointer || error.node || '') + ' ' + (error.detail || ''))))];
  if (!job.result) return [];
  const parts = [];
  if (typeof job.result.speedup === 'number')
    parts.push(el('p', {}, 'Measured in turns with the untuned package: ' + job.result.speedup.toFixed(2) +
      ' × its speed (' + ms(job.result.before.median_ms) + ' → ' + ms(job.result.after.median_ms) + ')' +
      (job.result.tuned ? '' : ': not faster, so the package is the untuned one')));
  if (job.result.left_out && job.result.left_out.length)
    parts.push(el('p', {}, 'Left out, as they do not pay within the model:'), el('ul', {}, job.result.left_out.map((part) =>
      el('li', {}, part.name + ' (' + ms(part.untuned_ms) + ' → ' + ms(part.tuned_ms) + ')'))));
  if (job.result.package)
    parts.push(el('p', {}, el('a', {class: 'button', href: '#packages/' + job.result.package}, 'Open the package')));
  return parts;
}
