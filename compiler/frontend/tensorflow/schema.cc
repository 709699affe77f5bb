#include "compiler/frontend/tensorflow/schema.h"

#include <algorithm>

#include "compiler/build/rows.h"
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

OpRow row_of(const RawRow& raw) {
  OpRow row{raw.name, build::words_of(raw.outputs), {}, {}, raw.convert};
  for (std::string_view word : build::words_of(raw.attributes)) {
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

const OpRow* find_row(std::string_view op) {
  static const build::ReadRows<OpRow> rows(kRows, &row_of, &OpRow::name);
  return rows.find(op);
}

}  // namespace tensormill::frontend::tensorflow
