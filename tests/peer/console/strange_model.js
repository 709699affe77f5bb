// An ONNX file with a node that nothing here implements, between two that are, written field by field.
'use strict';

const FLOAT = 1;

function varint(value) {
  const bytes = [];
  for (; value >= 128; value = Math.floor(value / 128)) bytes.push(value % 128 + 128);
  return Buffer.from([...bytes, value]);
}

const whole = (number, value) => Buffer.concat([varint(number * 8), varint(value)]);

function field(number, ...parts) {
  const data = Buffer.concat(parts.map((part) => Buffer.from(part)));
  return Buffer.concat([varint(number * 8 + 2), varint(data.length), data]);
}

const value = (number, name) => field(number, field(1, name), field(2, field(1, whole(1, FLOAT), field(2, field(1, whole(1, 4))))));
const node = (op, name, input, output) => field(1, field(1, input), field(2, output), field(3, name), field(4, op));

/** x → Relu "before" → OddOperator "odd" → Relu "after" → y */
const strangeModel = () => Buffer.concat([whole(1, 8),
  field(7, node('Relu', 'before', 'x', 'a'), node('OddOperator', 'odd', 'a', 'b'), node('Relu', 'after', 'b', 'y'), field(2, 'strange'), value(11, 'x'), value(12, 'y')),
  field(8, field(1, ''), whole(2, 17))]);

module.exports = {strangeModel};
