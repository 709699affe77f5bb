// Tables in which strings and numbers are looked up, filled as the model's own initialization does.
#include <charconv>
#include <cstring>
#include <set>

#include "compiler/build/text/lookup.h"
#include "compiler/build/text/text.h"
#include "compiler/frontend/tensorflow/node_context.h"
#include "runtime/base/text.h"

namespace tensormill::frontend::tensorflow {

namespace {

/// Which part of a line a key or value is: so many of them from the first, or these.
constexpr int64_t kWholeLine = -2, kLineNumber = -1;

std::vector<std::string> lines_of(std::string_view content) {
  std::vector<std::string> lines;
  while (!content.empty()) {
    const size_t end = std::min(content.find('\n'), content.size());
    std::string line(content.substr(0, end));
    std::erase(line, '\r');
    lines.push_back(std::move(line));
    content.remove_prefix(std::min(end + 1, content.size()));
  }
  return lines;
}

std::string column_of(const NodeContext& node, std::string_view line, int64_t index, char delimiter) {
  for (; index > 0; --index) {
    const size_t end = line.find(delimiter);
    if (end == std::string_view::npos) node.invalid("the file has a line of fewer columns than it asks for");
    line.remove_prefix(end + 1);
  }
  return std::string(line.substr(0, line.find(delimiter)));
}

template <typename T>
T number_of(const NodeContext& node, std::string_view text) {
  T value{};
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size())
    node.invalid("\"" + std::string(text.substr(0, 40)) + "\" of the file is no number");
  return value;
}

/// Of each line what `index` says, as elements of that type.
V column(NodeContext& node, const std::vector<std::string>& lines, int64_t index, char delimiter,
         DataType type) {
  const std::optional<DType> dtype = dtype_of(type);
  if (!dtype) node.unsupported("table", "elements of type " + std::string(type_name(type)));
  if (index < kWholeLine) node.invalid("column " + std::to_string(index));
  const auto count = static_cast<int64_t>(lines.size());
  if ((index == kWholeLine) != (*dtype == kString) && index < 0)
    node.invalid("a line, or its number, as " + std::string(dtype_name(*dtype)));
  std::vector<std::string> texts;
  for (const std::string& line : lines)
    texts.push_back(index < 0 ? line : column_of(node, line, index, delimiter));
  if (*dtype == kString) return build::text_constant(node, texts);
  ::tensormill::Tensor made(*dtype, {count});
  for (int64_t i = 0; i < count; ++i) {
    const std::string& text = texts[static_cast<size_t>(i)];
    if (is_float(*dtype)) {
      made.set_element(i, number_of<double>(node, text));
    } else {
      made.set_element_int(i, index == kLineNumber ? i : number_of<int64_t>(node, text));
    }
  }
  return node.constant(std::move(made));
}

const TableContent& content_of(NodeContext& node) {
  const std::string& name = node.table(0).name;
  auto& tables = node.import_state().tables;
  if (!tables.contains(name)) node.import_state().fill_tables();
  const auto found = tables.find(name);
  if (found == tables.end())
    node.unsupported("operand 0", "table \"" + name.substr(0, 200) +
                                      "\" is not filled by what the model does when it is loaded");
  return found->second;
}

const ::tensormill::Tensor& known(NodeContext& node, V value, const char* what) {
  const ::tensormill::Tensor* tensor = node.graph().value(value).tensor();
  if (tensor == nullptr) node.unsupported(what, "they are worked out by a run");
  return *tensor;
}

/// Rows of a constant along its first axis, each of that shape.
V rows_of(NodeContext& node, const ::tensormill::Tensor& from, const std::vector<int64_t>& rows, Shape row) {
  const auto bytes = static_cast<size_t>(num_bytes(row, from.dtype()));
  if (from.num_bytes() != bytes * static_cast<size_t>(from.shape()[0]))
    node.invalid("rows of shape " + to_string(row) + " of a table of shape " + to_string(from.shape()));
  row.insert(row.begin(), static_cast<int64_t>(rows.size()));
  ::tensormill::Tensor made(from.dtype(), row);
  for (size_t i = 0; i < rows.size(); ++i)
    std::memcpy(static_cast<char*>(made.data()) + i * bytes,
                static_cast<const char*>(from.data()) + static_cast<size_t>(rows[i]) * bytes, bytes);
  return node.constant(std::move(made));
}

/// One element of a constant, as one can compare it.
std::string element_of(const ::tensormill::Tensor& tensor, int64_t index) {
  if (tensor.dtype() == kString) return std::string(Texts({kString, tensor.shape(), tensor.data()})[index]);
  return std::to_string(tensor.element_as_int(index));
}

/// Of a table by places, keys [n,1] and values [n,...], those places that have a key.
TableContent without_holes(NodeContext& node, const TableHandle& table, V keys, V values) {
  const ::tensormill::Tensor &all = known(node, keys, "keys"), &from = known(node, values, "values");
  const Shape places = shown_shape(all.dtype(), all.shape());
  if (places.empty() || from.shape().empty() || from.shape()[0] != places[0])
    node.invalid("keys of shape " + to_string(places) + " for values of another number");
  if (num_elements(places) != places[0] || is_float(all.dtype()))
    node.unsupported("keys", "they are no single strings or whole numbers");
  std::set<std::string> holes;
  for (const V hole : table.no_keys) {
    const ::tensormill::Tensor& none = known(node, hole, "empty_key and deleted_key");
    if (none.dtype() != all.dtype() || num_elements(shown_shape(none.dtype(), none.shape())) != 1)
      node.invalid("a key that stands for none of another type");
    holes.insert(element_of(none, 0));
  }
  std::vector<int64_t> taken;
  for (int64_t i = 0; i < places[0]; ++i)
    if (!holes.contains(element_of(all, i))) taken.push_back(i);
  Shape key, value(from.shape().begin() + 1, from.shape().end());
  if (all.dtype() == kString) key.push_back(all.shape().back());
  // A value of no dims has a place of one.
  if (table.has_scalars && !value.empty()) value.erase(value.begin());
  return {rows_of(node, all, taken, key), rows_of(node, from, taken, value)};
}

}  // namespace

void convert_table_handle(NodeContext& node) {
  const std::string shared = node.text("shared_name", "");
  TableHandle table{shared.empty() ? node.label() : shared, node.file_type("key_dtype"),
                    node.file_type("value_dtype")};
  if (node.op() == "MutableDenseHashTableV2") {
    table.no_keys = {node.input(0), node.input(1)};
    table.has_scalars = !node.has("value_shape") || node.shape_attr("value_shape").dims.empty();
  }
  node.set_item(0, {std::move(table), {}});
}

// Operands: a table, its keys, its values; or a table and a file.
void convert_table_fill(NodeContext& node) {
  const TableHandle& table = node.table(0);
  TableContent content;
  if (node.op().starts_with("InitializeTableFromTextFile")) {
    const auto* file = std::get_if<AssetFile>(&node.item(1).value);
    if (file == nullptr) node.unsupported("filename", "it is no file of the model");
    std::vector<std::string> lines = lines_of(file->content);
    const int64_t behind = node.integer("offset", 0), most = node.integer("vocab_size", -1);
    if (behind != 0) node.unsupported("offset", "it is not implemented");
    if (most >= 0 && static_cast<size_t>(most) < lines.size()) lines.resize(static_cast<size_t>(most));
    const std::string delimiter = node.text("delimiter", "\t");
    if (delimiter.size() != 1) node.invalid("delimiter \"" + delimiter + "\" is no letter");
    content = {column(node, lines, node.integer("key_index"), delimiter[0], table.key),
               column(node, lines, node.integer("value_index"), delimiter[0], table.value)};
  } else {
    content = {node.input(1), node.input(2)};
    static_cast<void>(known(node, content.keys, "keys"));
    if (!table.no_keys.empty()) content = without_holes(node, table, content.keys, content.values);
  }
  node.import_state().tables.insert_or_assign(table.name, content);
}

// Operands: the checkpoint, names of variables, and which part of each.
void convert_restore(NodeContext& node) {
  if (!std::holds_alternative<CheckpointFiles>(node.item(0).value))
    node.unsupported("prefix", "it is not the model's own checkpoint");
  const std::vector<std::string> names = node.known_texts(1, "tensor_names");
  for (const std::string& part : node.known_texts(2, "shape_and_slices"))
    if (!part.empty()) node.unsupported("shape_and_slices", "parts of variables are not implemented");
  if (node.list_size("dtypes") != names.size()) node.invalid("other types than variables");
  const LoadedModel& loaded = node.import_state().loaded;
  std::vector<Item> items(names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    const auto found = loaded.model().variables.find(names[i]);
    // What is not there, or what no tensor has, is an error of what reads it.
    if (found != loaded.model().variables.end() && dtype_of(found->second.dtype))
      items[i].value = node.file_constant(loaded.variable(names[i]));
  }
  node.set_items(std::move(items));
}

void convert_table_export(NodeContext& node) {
  if (!node.table(0).no_keys.empty())
    node.unsupported("operand 0", "places without a key are not implemented");
  const TableContent& content = content_of(node);
  node.set_output(0, content.keys);
  node.set_output(1, content.values);
}

// Operands: a table, keys, the value of what is no key of it.
void convert_table_find(NodeContext& node) {
  const TableContent& content = content_of(node);
  node.set_output(0, build::looked_up(node, node.input(1), *node.graph().value(content.keys).tensor(),
                                      content.values, node.input(2)));
}

void convert_table_size(NodeContext& node) {
  const ir::SymShape keys = build::model_shape(node, content_of(node).keys);
  node.set_output(0, Compose(node).dims({num_elements(keys)}, {}));
}

}  // namespace tensormill::frontend::tensorflow
