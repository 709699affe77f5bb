// Tables of a file, which a subgraph that runs once fills: what is looked up in them are strings or numbers.
#include "compiler/build/lookup.h"
#include "compiler/build/text.h"
#include "compiler/frontend/tflite/node_context.h"

namespace tensormill::frontend::tflite {

namespace {

const LookupTable& lookup_table_of(NodeContext& node) {
  const auto& tables = node.import_state().lookup_tables;
  const auto found = tables.find(node.handle(0));
  if (found == tables.end()) node.invalid("the table is read before anything fills it");
  return found->second;
}

}  // namespace

// Tables and variables have numbers of one kind: names of variables hold a "/".
void convert_hashtable(NodeContext& node) {
  const auto options = node.options<HashtableOptions>();
  auto& handles = node.import_state().handles;
  const auto number = static_cast<int64_t>(handles.size());
  const int64_t known = handles.emplace("table " + std::to_string(options.table_id), number).first->second;
  node.set_stored(0, node.constant(::tensormill::Tensor::from<int64_t>({1}, std::vector<int64_t>{known})));
}

// A table that has keys keeps them.
void convert_hashtable_import(NodeContext& node) {
  const LookupTable table{node.stored(1), node.stored(2)};
  if (node.graph().value(table.keys).tensor() == nullptr)
    node.unsupported("keys", "they are worked out by a run");
  node.import_state().lookup_tables.emplace(node.handle(0), table);
}

// Operands: a table, keys, the value of what is no key of it.
void convert_hashtable_find(NodeContext& node) {
  const LookupTable& table = lookup_table_of(node);
  node.set_stored(0, build::looked_up(node, node.stored(1), *node.graph().value(table.keys).tensor(),
                                      table.values, node.stored(2)));
}

void convert_hashtable_size(NodeContext& node) {
  node.set_stored(
      0, Compose(node).dims({num_elements(build::model_shape(node, lookup_table_of(node).keys))}, {1}));
}

}  // namespace tensormill::frontend::tflite
