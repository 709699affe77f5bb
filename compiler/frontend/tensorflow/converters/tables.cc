// Tables in which strings and numbers are looked up, filled as the model's own initialization does.
#include <charconv>

#include "compiler/build/lookup.h"
#include "compiler/build/text.h"
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

}  // namespace

void convert_table_handle(NodeContext& node) {
  const std::string shared = node.text("shared_name", "");
  node.set_item(0, {TableHandle{shared.empty() ? node.label() : shared, node.file_type("key_dtype"),
                                node.file_type("value_dtype")},
                    {}});
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
    if (node.graph().value(content.keys).tensor() == nullptr)
      node.unsupported("keys", "they are worked out by a run");
  }
  node.import_state().tables.insert_or_assign(table.name, content);
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
