'use strict';

// Every text comes from the server's data, so nodes are filled by textContent only.
function cell(text, className) {
  const td = document.createElement('td');
  td.textContent = text;
  if (className) td.className = className;
  return td;
}

function fill(id, rows) {
  const body = document.querySelector('#' + id + ' tbody');
  body.replaceChildren(...rows.map((cells) => {
    const tr = document.createElement('tr');
    tr.append(...cells);
    return tr;
  }));
}

async function get(path) {
  const response = await fetch(path, {headers: {Accept: 'application/json'}});
  const body = await response.json();
  if (!response.ok) throw new Error(body.detail || String(response.status));
  return body;
}

const short = (id) => id.replace('sha256:', '').slice(0, 12);
const spec = (tensor) => tensor.name + ' ' + tensor.dtype + '[' + tensor.shape.join(',') + ']';
const specs = (tensors) => tensors.map(spec).join(', ');
const megabytes = (bytes) => (bytes / 1e6).toFixed(1) + ' MB';

function showModels(page) {
  fill('models', page.items.map((m) => [cell(m.name), cell(m.format), cell(specs(m.inputs)),
    cell(m.parameters.toLocaleString()), cell(megabytes(m.size)), cell(short(m.id), 'id')]));
}

function progress(p) {
  const count = p.total > 1 ? ' ' + p.done + '/' + p.total : '';
  const best = p.best_ms === null ? '' : ', ' + p.best_ms.toFixed(3) + ' ms';
  return p.stage + count + best + (p.eta_s === null ? '' : ', ' + Math.ceil(p.eta_s) + ' s left');
}

function showJobs(page) {
  fill('jobs', page.items.map((j) => [cell(j.id, 'id'), cell(j.kind), cell(j.state, j.state), cell(progress(j.progress)),
    cell(j.created_at), cell(j.error ? j.error.detail : j.result && j.result.package ? short(j.result.package) : '')]));
}

function showPackages(page) {
  fill('packages', page.items.map((p) => [cell(short(p.id), 'id'), cell(specs(p.inputs)),
    cell(megabytes(p.archive.size)), cell(p.deployments.join(', '))]));
}

function showDeployments(page) {
  fill('deployments', page.items.map((d) => [cell(d.name), cell(d.default_version || '—'),
    cell(Object.entries(d.versions).map(([v, x]) => v + ': ' + x.state + (x.reason ? ' (' + x.reason + ')' : '')).join(', '))]));
}

async function refresh() {
  const error = document.getElementById('error');
  try {
    const [models, jobs, packages, deployments] = await Promise.all(
      ['models', 'jobs', 'packages', 'deployments'].map((what) => get('/v1/' + what)));
    showModels(models);
    showJobs(jobs);
    showPackages(packages);
    showDeployments(deployments);
    error.hidden = true;
  } catch (problem) {
    error.textContent = problem.message;
    error.hidden = false;
  }
}

get('/v1/info').then((info) => {
  document.getElementById('info').textContent =
    info.version + ' · LLVM ' + info.compiler.llvm + ' · ' + info.host.cpu + ', ' + info.host.cores + ' cores';
}).catch(() => {});
refresh();
setInterval(refresh, 3000);
