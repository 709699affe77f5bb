'use strict';
// Models: bring one in, and start the jobs that work on it.

async function showModels(page) {
  const models = await list('/v1/models');
  page.replaceChildren(
    uploadForm(),
    el('h2', {}, 'Models'),
    table(['name', 'inputs', 'parameters', 'size', 'id', ''], models.map((model) => [
      model.name || '—', specs(model.inputs), model.parameters.toLocaleString(), bytes(model.size), idText(model.id),
      el('div', {class: 'actions'},
        el('a', {class: 'button', href: '#models/' + model.id}, 'Compile or tune'),
        action('Delete', async () => {
          if (!confirm('Delete the model ' + (model.name || shortId(model.id)) + '?')) return;
          await send('DELETE', '/v1/models/' + encodeURIComponent(model.name || model.id));
          await refresh();
        }, {class: 'quiet'}))]),
    'No model yet: choose an ONNX file above.'));
}

function uploadForm() {
  const bar = el('progress', {max: 1, value: 0, hidden: true, 'aria-label': 'upload'});
  const file = el('input', {type: 'file', name: 'file', required: true, accept: '.onnx,.tar,.zip'});
  const name = el('input', {name: 'name', required: true, pattern: '[A-Za-z0-9][A-Za-z0-9._\\-]{0,127}',
    placeholder: 'resnet50'});
  file.addEventListener('change', () => {
    if (!name.value && file.files[0]) name.value = file.files[0].name.replace(/\.(onnx|tar|zip)$/i, '').replace(/[^\w.-]/g, '-');
  });
  return el('form', {class: 'panel', id: 'upload', onsubmit: (event) => {
    event.preventDefault();
    attempt(async () => {
      bar.hidden = false;
      try {
        const model = await upload('/v1/models?name=' + encodeURIComponent(name.value), file.files[0],
          (part) => { bar.value = part; });
        location.hash = '#models/' + model.id;
      } finally {
        bar.hidden = true;
      }
    });
  }}, el('h2', {}, 'Add a model'),
  field('File', file, 'an .onnx file, or a tar or zip of one with its external weights'),
  field('Name', name), el('button', {}, 'Upload'), bar);
}

/** A model's own page: what it is, and the form of a job. */
async function showModel(page, id) {
  const [model, targets] = await Promise.all([get('/v1/models/' + id), get('/v1/targets')]);
  const operators = Object.entries(model.ops).map(([name, count]) => name + ' × ' + count).join(', ');
  page.replaceChildren(
    el('h2', {}, 'Model ' + (model.name || shortId(model.id))),
    el('dl', {},
      el('dt', {}, 'inputs'), el('dd', {}, specs(model.inputs)),
      el('dt', {}, 'outputs'), el('dd', {}, specs(model.outputs)),
      el('dt', {}, 'operators'), el('dd', {}, operators)),
    jobForm(model, targets.items));
}

/** Names of the dims that the job must bind, in order. */
function freeDims(model) {
  return [...new Set(model.inputs.flatMap((input) => input.shape.filter((dim) => typeof dim === 'string')))];
}

function jobForm(model, targets) {
  const free = freeDims(model);
  const tuning = el('fieldset', {hidden: true}, el('legend', {}, 'Search'),
    field('Trials', el('input', {name: 'trials', type: 'number', min: 1, value: 256}), 'schedules to measure in all'),
    field('Seconds at most', el('input', {name: 'seconds', type: 'number', min: 0, value: 300}), '0: no limit'));
  const kind = select('kind', [['compile', 'Compile'], ['tune', 'Tune, then compile']], 'compile');
  kind.addEventListener('change', () => { tuning.hidden = kind.value !== 'tune'; });
  return el('form', {class: 'panel', id: 'job', onsubmit: (event) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    attempt(async () => {
      const job = await send('POST', '/v1/jobs', jobRequest(model, form));
      location.hash = '#jobs/' + job.id;
    });
  }},
  el('h2', {}, 'New job'),
  field('What', kind),
  field('Target', el('input', {name: 'target', value: 'llvm -mcpu=native', list: 'targets', required: true}),
    'the machine that runs the package'),
  el('datalist', {id: 'targets'}, targets.map((target) => el('option', {value: target.target}, target.name))),
  field('Optimization level', select('level', ['0', '1', '2', '3', '4'].map((level) => [level, level]), '3')),
  free.map((dim) => field('Extent of ' + dim,
    el('input', {name: 'dim-' + dim, type: 'number', min: 1, value: 1, required: true}))),
  tuning, el('button', {}, 'Start'));
}

function jobRequest(model, form) {
  const request = {kind: form.get('kind'), model: model.id, target: form.get('target'),
    opt_level: Number(form.get('level'))};
  const bound = (dim) => (typeof dim === 'string' ? Number(form.get('dim-' + dim)) : dim);
  const open = model.inputs.filter((input) => input.shape.some((dim) => typeof dim === 'string'));
  if (open.length > 0)
    request.input_shapes = Object.fromEntries(open.map((input) => [input.name, input.shape.map(bound)]));
  if (request.kind === 'tune') {
    request.trials = Number(form.get('trials'));
    request.time_budget_s = Number(form.get('seconds'));
  }
  return request;
}
