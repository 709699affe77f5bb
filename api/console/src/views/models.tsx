// Models: what there is, and the way to bring one in.
import type {JSX} from 'preact';
import {useRef, useState} from 'preact/hooks';
import {importModel, nameOf, SampleButton} from '../drop';
import {bytes, compact} from '../format';
import {send} from '../http';
import {useRows} from '../load';
import {href, usePlace} from '../router';
import {S} from '../strings';
import type {Model} from '../types';
import {Action, confirmed, cursorOf, Empty, Field, Form, Id, Loading, Pager, Specs, Table, Time} from '../ui';

export function Models(): JSX.Element {
  const {query} = usePlace();
  const list = useRows<Model>('/v1/models?' + cursorOf(query), (model) => model.id + model.name);
  const remove = async (model: Model) => {
    if (!confirmed(S.models.confirmDelete(model.name || model.id))) return;
    await send('DELETE', '/v1/models/' + encodeURIComponent(model.name || model.id));
    list.reload();
  };
  if (!list.rows) return <><h1>{S.nav.models}</h1><UploadForm /><Loading /></>;
  return (
    <>
      <h1>{S.nav.models}</h1>
      {list.rows.length === 0
        ? <Empty title={S.models.none}><p>{S.models.noneWhy}</p>
          <p><SampleButton /></p></Empty>
        : <Table label={S.nav.models} rows={list.rows} keyOf={(model) => model.id + model.name} columns={[
          {title: S.columns.name, cell: (model) => <a href={href('models', model.id)}>{model.name || S.unnamed}</a>},
          {title: S.columns.inputs, cell: (model) => <Specs tensors={model.inputs} />},
          {title: S.columns.parameters, numeric: true, cell: (model) => compact(model.parameters)},
          {title: S.columns.size, numeric: true, cell: (model) => bytes(model.size)},
          {title: S.columns.imported, cell: (model) => <Time at={model.created_at} />},
          {title: S.columns.id, cell: (model) => <Id id={model.id} />},
          {title: '', cell: (model) => <div class="actions">
            <a class="button" href={href('models', model.id, {tab: 'build'})}>{S.models.build}</a>
            <Action kind="quiet" work={() => remove(model)} label={S.delete + ' ' + model.name}>{S.delete}</Action></div>},
        ]} />}
      <Pager next={list.next} changed={list.changed} show={list.show} />
      <UploadForm />
    </>);
}

function UploadForm(): JSX.Element {
  const [name, setName] = useState('');
  const file = useRef<HTMLInputElement>(null);
  const chosen = () => {
    const picked = file.current?.files?.[0];
    if (!name && picked) setName(nameOf(picked.name));
  };
  return (
    <Form id="upload" title={S.models.add} submit={S.models.upload}
      work={() => importModel(file.current!.files![0]!, name, false)}>
      <p class="hint">{S.models.dropHint}</p>
      <Field label={S.models.file} hint={S.models.fileHint}>
        <input ref={file} type="file" name="file" required accept=".onnx,.tflite,.keras,.h5,.pt2,.pt,.mlmodel,.model,.dnn,.tmg,.tar,.zip" onChange={chosen} /></Field>
      <Field label={S.models.name}>
        <input name="name" required pattern="[A-Za-z0-9][A-Za-z0-9._\-]{0,127}" placeholder="resnet50" value={name}
          onInput={(event) => setName(event.currentTarget.value)} /></Field>
    </Form>);
}
