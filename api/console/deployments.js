'use strict';
// Deployments: what serves, tried out from here.

async function showDeployments(page) {
  const [deployments, stats] = await Promise.all([list('/v1/deployments'), get('/v2/models/stats')]);
  const served = (name) => stats.model_stats.filter((row) => row.name === name)
    .reduce((sum, row) => sum + row.inference_stats.success.count, 0);
  const versions = (item) => Object.entries(item.versions).map(([version, {state, reason}]) =>
    el('div', {}, version + ': ', el('span', {class: state}, state), reason ? ' (' + reason + ')' : ''));
  page.replaceChildren(el('h2', {}, 'Deployments'), table(['name', 'default', 'versions', 'answered', ''],
    deployments.map((item) => [el('a', {href: '#deployments/' + encodeURIComponent(item.name)}, item.name),
      item.default_version || '—', versions(item), served(item.name).toLocaleString(),
      action('Delete', async () => {
        if (!confirm('Stop serving ' + item.name + '?')) return;
        await send('DELETE', '/v1/deployments/' + encodeURIComponent(item.name));
        await refresh();
      }, {class: 'quiet'})]),
    'Nothing is served: open a package to deploy it.'));
}

async function showDeployment(page, name) {
  const path = '/v1/deployments/' + encodeURIComponent(name);
  const item = await get(path);
  page.replaceChildren(
    el('h2', {}, 'Deployment ' + item.name),
    el('dl', {},
      el('dt', {}, 'inputs'), el('dd', {}, specs(item.inputs || [])),
      el('dt', {}, 'outputs'), el('dd', {}, specs(item.outputs || [])),
      el('dt', {}, 'versions'), el('dd', {}, Object.entries(item.versions).map(([version, {state, package: id}]) =>
        el('div', {}, version + (version === item.default_version ? ' (default)' : '') + ': ',
          el('span', {class: state}, state), ' ', el('a', {href: '#packages/' + id}, idText(id)))))),
    pictureForm(path), randomForm(path));
}

function pictureForm(path) {
  const answer = el('div', {'aria-live': 'polite'});
  const file = el('input', {type: 'file', accept: 'image/jpeg,image/png', name: 'picture', required: true});
  return el('form', {class: 'panel', id: 'classify', onsubmit: (event) => {
    event.preventDefault();
    attempt(async () => {
      const response = await request('POST', path + '/classify?top=5',
        {body: file.files[0], headers: {'Content-Type': file.files[0].type}});
      answer.replaceChildren(...topLabels(await response.json()));
    });
  }}, el('h2', {}, 'Classify a picture'), field('Picture', file, 'JPEG or PNG'), el('button', {}, 'Classify'), answer);
}

function topLabels({top, timing}) {
  return [table(['label', 'probability', ''], top.map(({label, index, probability}) => [label || String(index),
    (100 * probability).toFixed(1) + ' %', el('meter', {min: 0, max: 1, value: probability})]), ''),
  el('p', {}, 'read in ' + ms(timing.decode_ms) + ', waited ' + ms(timing.queue_ms) + ', computed in ' + ms(timing.compute_ms))];
}

function randomForm(path) {
  const answer = el('p', {'aria-live': 'polite'});
  return el('form', {class: 'panel', id: 'random', onsubmit: (event) => {
    event.preventDefault();
    attempt(async () => {
      const response = await request('POST', path + '/infer?fill_mode=random&seed=1');
      const {byteLength} = await response.arrayBuffer();
      answer.textContent = 'version ' + response.headers.get('X-Deployment-Version') + ' answered ' + bytes(byteLength) +
        ' of tensors; milliseconds: ' + response.headers.get('Server-Timing').replaceAll(';dur=', ' ');
    });
  }}, el('h2', {}, 'Run on random tensors'), el('button', {}, 'Run'), answer);
}
