#include "compiler/build/rows.h"

namespace tensormill::build {

std::optional<DType> dtype_numbered(std::span<const NumberedType> types, int64_t number) {
  const NumberedType* row = find_in(types, &NumberedType::number, number);
  return row == nullptr ? std::nullopt : std::optional(row->dtype);
}

const char* graph_name(const OpBuilder& builder, std::span<const OpName> names, std::string_view op) {
  const OpName* name = find_in(names, &OpName::model, op);
  if (name == nullptr) builder.invalid("it has a converter of other operators");
  return name->graph;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

}  // namespace tensormill::build
