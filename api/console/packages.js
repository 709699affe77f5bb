'use strict';
// Packages: what jobs made, and the form that puts one into service.

const STAGES = ['relay', 'te', 'tir', 'll', 'asm'];

async function showPackages(page) {
  const packages = await list('/v1/packages');
  page.replaceChildren(el('h2', {}, 'Packages'), table(['id', 'inputs', 'archive', 'made', 'deployed as', ''],
    packages.map((item) => [el('a', {href: '#packages/' + item.id}, idText(item.id)), specs(item.inputs),
      bytes(item.archive.size), time(item.created_at), item.deployments.join(', '),
      action('Delete', async () => {
        if (!confirm('Delete the package ' + shortId(item.id) + '?')) return;
        await send('DELETE', '/v1/packages/' + item.id);
        await refresh();
      }, {class: 'quiet', disabled: item.deployments.length > 0})]),
    'No package yet: compile a model.'));
}

async function showPackage(page, id) {
  const item = await get('/v1/packages/' + id);
  const {metadata} = item;
  const code = el('pre', {});
  const stage = select('stage', STAGES.map((name) => [name, name]), 'relay');
  page.replaceChildren(
    el('h2', {}, 'Package ', idText(item.id)),
    el('dl', {},
      el('dt', {}, 'inputs'), el('dd', {}, specs(item.inputs)),
      el('dt', {}, 'target'), el('dd', {}, el('code', {}, metadata.target || '')),
      el('dt', {}, 'kernels'), el('dd', {}, metadata.kernels.length + ', ' +
        metadata.kernels.filter((kernel) => kernel.tuning_record).length + ' of them tuned'),
      el('dt', {}, 'operations'), el('dd', {}, (metadata.flops / 1e9).toPrecision(3) + ' GFLOP a run'),
      el('dt', {}, 'archive'), el('dd', {}, bytes(item.archive.size), ' ',
        action('Download', () => download('/v1/packages/' + id + '/archive', shortId(id) + '.tar')))),
    deployForm(item),
    el('div', {class: 'panel'}, el('h2', {}, 'Code'), field('Stage', stage), action('Show', async () => {
      code.textContent = await (await request('GET', '/v1/packages/' + id + '/code?stage=' + stage.value)).text();
    }), code));
}

const numbers = (text) => text.split(/[\s,]+/).filter(Boolean).map(Number);

function deployForm(item) {
  const pictures = el('fieldset', {hidden: true}, el('legend', {}, 'From a picture to the input'),
    field('Resize the short side to', el('input', {name: 'resize', type: 'number', min: 1, value: 256})),
    field('Crop', el('input', {name: 'crop', type: 'number', min: 1, value: 224})),
    field('Mean', el('input', {name: 'mean', value: '0.485, 0.456, 0.406'}), 'of each channel, after scaling to 0…1'),
    field('Deviation', el('input', {name: 'std', value: '0.229, 0.224, 0.225'})),
    field('Layout', select('layout', [['NCHW', 'NCHW'], ['NHWC', 'NHWC']], 'NCHW')),
    field('Colours', select('color', [['rgb', 'RGB'], ['bgr', 'BGR'], ['gray', 'grey']], 'rgb')),
    field('Output', select('output', [['logits', 'logits'], ['probabilities', 'probabilities']], 'logits')),
    field('Labels', el('textarea', {name: 'labels', rows: 4}), 'one a line, in the order of the classes'));
  const takes = el('input', {type: 'checkbox', name: 'pictures'});
  takes.addEventListener('change', () => { pictures.hidden = !takes.checked; });
  const [shape] = item.inputs.map((input) => input.shape);
  if (shape && shape.length === 4) {
    pictures.querySelector('[name=crop]').value = pictures.querySelector('[name=resize]').value = shape[2];
    if (shape[1] === 1) {
      pictures.querySelector('[name=color]').value = 'gray';
      pictures.querySelector('[name=mean]').value = '0';
      pictures.querySelector('[name=std]').value = '1';
    }
  }
  return el('form', {class: 'panel', id: 'deploy', onsubmit: (event) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    attempt(async () => {
      const name = form.get('name');
      await send('PUT', '/v1/deployments/' + encodeURIComponent(name), deployment(item.id, form));
      location.hash = '#deployments/' + encodeURIComponent(name);
    });
  }},
  el('h2', {}, 'Serve it'),
  field('Name', el('input', {name: 'name', required: true, placeholder: 'digits'}), 'an existing one gets this package as a new version'),
  field('Version', el('input', {name: 'version', type: 'number', min: 1, value: 1})),
  field('Rows a run', el('input', {name: 'max_batch', type: 'number', min: 1, value: 1}),
    'above 1: requests wait for each other and share a run'),
  el('label', {class: 'field'}, el('span', {}, 'Takes pictures'), takes), pictures, el('button', {}, 'Deploy'));
}

function deployment(id, form) {
  const request = {package: id, version: form.get('version'), max_batch: Number(form.get('max_batch'))};
  if (!form.get('pictures')) return request;
  const labels = form.get('labels').split('\n').map((line) => line.trim()).filter(Boolean);
  return {...request, ...(labels.length > 0 ? {labels} : {}), output: form.get('output'),
    preprocess: {resize: Number(form.get('resize')), crop: Number(form.get('crop')), mean: numbers(form.get('mean')),
      std: numbers(form.get('std')), layout: form.get('layout'), color: form.get('color')}};
}
