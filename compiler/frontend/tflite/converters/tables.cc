// Tables of a file, which a subgraph that runs once fills: what is looked up in them are strings or numbers.
#include "compiler/build/text/lookup.h"
#include "compiler/build/text/text.h"
#include "compiler/frontend/tflite/node_context.h"

namespace tensormill::frontend::tflite {

namespace {

LookupTable& lookup_table_of(NodeContext& node) {
  auto& tables = node.import_state().lookup_tables;
  const auto found = tables.find(node.handle(0));
  if (found == tables.end()) node.invalid("operand 0 is no table");
  return found->second;
}

const LookupTable& filled_table_of(NodeContext& node) {
  const LookupTable& table = lookup_table_of(node);
  if (table.keys == ir::kAbsent) node.invalid("the table is read before anything fills it");
  return table;
}

}  // namespace

// Tables and variables have numbers of one kind: names of variables hold a "/".
void convert_hashtable(NodeContext& node) {
  const auto options = node.options<HashtableOptions>();
  auto& handles = node.import_state().handles;
  const auto number = static_cast<int64_t>(handles.size());
  const int64_t known = handles.emplace("table " + std::to_string(options.table_id), number).first->second;
  node.import_state().lookup_tables.emplace(known, LookupTable{options.key_dtype, options.value_dtype});
  node.set_stored(0, node.constant(::tensormill::Tensor::from<int64_t>({1}, std::vector<int64_t>{known})));
}

// A table that has keys keeps them.
void convert_hashtable_import(NodeContext& node) {
  LookupTable& table = lookup_table_of(node);
  if (node.input_tensor(1).type != table.key_type || node.input_tensor(2).type != table.value_type)
    node.invalid("keys of " + std::string(type_name(node.input_tensor(1).type)) + " and values of " +
                 std::string(type_name(node.input_tensor(2).type)) + " for a table of " +
                 std::string(type_name(table.key_type)) + " and " + std::string(type_name(table.value_type)));
  if (table.keys != ir::kAbsent) return;
  const V keys = node.stored(1);
  if (node.graph().value(keys).tensor() == nullptr) node.unsupported("keys", "they are worked out by a run");
  table.keys = keys;
  table.values = node.stored(2);
}

// Operands: a table, keys, the value of what is no key of it.
void convert_hashtable_find(NodeContext& node) {
  const LookupTable& table = filled_table_of(node);
  node.set_stored(0, build::looked_up(node, node.stored(1), *node.graph().value(table.keys).tensor(),
                                      table.values, node.stored(2)));
}

void convert_hashtable_size(NodeContext& node) {
  node.set_stored(
      0, Compose(node).dims({num_elements(build::model_shape(node, filled_table_of(node).keys))}, {1}));
}

}  // namespace tensormill::frontend::tflite
