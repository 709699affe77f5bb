#include "compiler/frontend/tensorflow/schema.h"

#include <algorithm>
#include <map>

#include "compiler/frontend/tensorflow/node_context.h"

namespace tensormill::frontend::tensorflow {

namespace {

struct RawRow {
  const char* name;
  const char* outputs;
  const char* attributes;
  Converter convert;
};
constexpr RawRow kRows[] = {
#define TF_OP(name, outputs, attributes, convert) {name, outputs, attributes, &convert},
#include "compiler/frontend/tensorflow/tf_ops.def"
#undef TF_OP
};

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

OpRow row_of(const RawRow& raw) {
  OpRow row{raw.name, words_of(raw.outputs), {}, {}, raw.convert};
  for (std::string_view word : words_of(raw.attributes)) {
    const bool is_unread = word.starts_with('~');
    if (is_unread) word.remove_prefix(1);
    (is_unread ? row.unread : row.attributes).push_back(word);
  }
  return row;
}

bool has(const std::vector<std::string_view>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

bool OpRow::knows(std::string_view attribute) const {
  return has(attributes, attribute) || has(unread, attribute);
}

bool fills_table(std::string_view op) {
  return op.starts_with("InitializeTable") || op.starts_with("LookupTableImport");
}

const std::vector<OpRow>& all_rows() {
  static const std::vector<OpRow> rows = [] {
    std::vector<OpRow> made;
    for (const RawRow& raw : kRows) made.push_back(row_of(raw));
    return made;
  }();
  return rows;
}

const OpRow* find_row(std::string_view op) {
  static const std::map<std::string_view, const OpRow*> by_name = [] {
    std::map<std::string_view, const OpRow*> made;
    for (const OpRow& row : all_rows()) made.emplace(row.name, &row);
    return made;
  }();
  const auto found = by_name.find(op);
  return found == by_name.end() ? nullptr : found->second;
}

}  // namespace tensormill::frontend::tensorflow
