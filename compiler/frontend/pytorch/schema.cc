#include "compiler/frontend/pytorch/schema.h"

#include <algorithm>
#include <iterator>

#include "compiler/build/rows.h"
#include "compiler/frontend/pytorch/node_context.h"
#include "runtime/base/text.h"

namespace tensormill::frontend::pytorch {

namespace {

struct RawRow {
  const char* target;
  const char* arguments;
  Converter convert;
};
constexpr RawRow kRows[] = {
#define PT_OP(target, arguments, convert) {target, arguments, &convert},
#include "compiler/frontend/pytorch/aten_ops.def"
#undef PT_OP
};

constexpr std::string_view kRandom[] = {
#define PT_RANDOM(name) name,
#include "compiler/frontend/pytorch/refused_ops.def"
#undef PT_RANDOM
};

/// "None", "True", "False", numbers and lists as JSON has them; anything else is a text.
Json value_of(const std::string& text) {
  if (text == "None") return nullptr;
  if (text == "True" || text == "False") return text == "True";
  const bool is_json = text.find_first_not_of("-0123456789.,[]e") == std::string::npos;
  return is_json ? parse_json(text) : Json(text);
}

/// "self other ~device=None alpha=1"
std::vector<SchemaArgument> arguments_of(std::string_view text) {
  std::vector<SchemaArgument> arguments;
  for (std::string_view word : build::words_of(text)) {
    SchemaArgument argument;
    argument.is_unread = word.starts_with('~');
    if (argument.is_unread) word.remove_prefix(1);
    const size_t equals = word.find('=');
    argument.name = word.substr(0, equals);
    if (equals != std::string_view::npos) argument.otherwise = value_of(std::string(word.substr(equals + 1)));
    arguments.push_back(std::move(argument));
  }
  return arguments;
}

OpRow row_of(const RawRow& raw) {
  OpRow row;
  row.target = raw.target;
  row.convert = raw.convert;
  row.arguments = arguments_of(raw.arguments);
  const size_t first = row.target.find('.'), last = row.target.rfind('.');
  row.name = row.target.substr(first + 1, last > first ? last - first - 1 : std::string::npos);
  if (last > first) row.overload = row.target.substr(last + 1);
  // Python's own and_ and or_ are of numbers, and write to nothing.
  row.is_in_place = !row.target.starts_with("_operator.") && row.name.size() > 1 && row.name.ends_with('_') &&
                    !row.name.ends_with("__");
  if (row.is_in_place) row.name.pop_back();
  return row;
}

const build::ReadRows<OpRow>& op_rows() {
  static const build::ReadRows<OpRow> read(kRows, &row_of, &OpRow::target);
  return read;
}

}  // namespace

std::string_view short_target(std::string_view target) {
  constexpr std::string_view kPrefix = "torch.ops.";
  return target.starts_with(kPrefix) ? target.substr(kPrefix.size()) : target;
}

std::string why_missing(std::string_view target) {
  const std::string_view full = short_target(target);
  const size_t first = full.find('.'), last = full.rfind('.');
  const std::string_view name = last > first ? full.substr(0, last) : full;
  if (std::find(std::begin(kRandom), std::end(kRandom), name) != std::end(kRandom))
    return "random numbers are not implemented, as a package gives the same results for the same inputs: "
           "give "
           "them to the module as an input, or export it in eval mode";
  if (name.ends_with("_backward"))
    return "gradients are not implemented: export the module in eval mode, without what trains it";
  return "";
}

const std::vector<OpRow>& all_rows() { return op_rows().all(); }

const OpRow* find_row(std::string_view target) { return op_rows().find(short_target(target)); }

}  // namespace tensormill::frontend::pytorch
