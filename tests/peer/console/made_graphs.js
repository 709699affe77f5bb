// Graphs as /v1/models/{model}/graph tells them, of any size: residual blocks as those of image networks, and transformers
// with names that are paths.
'use strict';

class Maker {
  constructor() {
    this.nodes = [];
    this.values = {input: {type: 'f32[1,64,56,56]', constant: false}};
  }

  node(op, inputs, name, constants = 1) {
    const output = name + '_out';
    const weights = Array.from({length: constants}, (_, i) => name + '.weight' + i);
    for (const weight of weights) this.values[weight] = {type: 'f32[64,64,3,3]', constant: true};
    this.values[output] = {type: 'f32[1,64,56,56]', constant: false};
    this.nodes.push({op, inputs: [...inputs, ...weights], outputs: [output], origins: [name], attributes: {strides: 'ints[1, 1]'}});
    return output;
  }

  graph(last) {
    return {stage: 'imported', name: 'made', inputs: ['input'], outputs: [last], nodes: this.nodes, values: this.values};
  }
}

/** `count` nodes in blocks of nine with two branches that are added. */
function residual(count, name = (block, part) => 'node_' + part + '_' + block) {
  const made = new Maker();
  let last = 'input';
  for (let block = 0; made.nodes.length < count; ++block) {
    let inner = last;
    for (const part of ['conv_a', 'norm_a', 'relu_a', 'conv_b', 'norm_b']) inner = made.node(part.split('_')[0], [inner], name(block, part));
    let side = last;
    for (const part of ['conv_c', 'norm_c']) side = made.node(part.split('_')[0], [side], name(block, part));
    last = made.node('relu', [made.node('add', [inner, side], name(block, 'add'), 0)], name(block, 'relu_b'), 0);
  }
  return made.graph(last);
}

/** Layers whose nodes' names are paths, all of which read one mask. */
function transformer(layers) {
  const made = new Maker();
  let last = made.node('gather', ['input'], '/embed/Gather');
  const mask = made.node('cast', ['input'], '/mask/Cast', 0);
  for (let layer = 0; layer < layers; ++layer) {
    const at = '/layers.' + layer + '/';
    const norm = made.node('layer_norm', [last], at + 'norm/LayerNorm');
    const [q, k, v] = ['q', 'k', 'v'].map((part) => made.node('matmul', [norm], at + 'attn/' + part + '/MatMul'));
    const scores = made.node('add', [made.node('matmul', [q, k], at + 'attn/scores/MatMul', 0), mask], at + 'attn/mask/Add', 0);
    const mixed = made.node('matmul', [made.node('softmax', [scores], at + 'attn/Softmax', 0), v], at + 'attn/mix/MatMul', 0);
    const sum = made.node('add', [last, made.node('matmul', [mixed], at + 'attn/o/MatMul')], at + 'Add', 0);
    const wide = made.node('gelu', [made.node('matmul', [made.node('layer_norm', [sum], at + 'norm2/LayerNorm')], at + 'mlp/up/MatMul')], at + 'mlp/Gelu', 0);
    last = made.node('add', [sum, made.node('matmul', [wide], at + 'mlp/down/MatMul')], at + 'Add_1', 0);
  }
  return made.graph(last);
}

module.exports = {residual, transformer};
