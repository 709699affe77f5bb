#include "compiler/ir/op_def.h"

#include "runtime/base/error.h"

namespace tensormill::ir {

OpRegistry::OpRegistry(std::vector<OpDef> defs) : defs_(std::move(defs)) {
  for (size_t i = 0; i < defs_.size(); ++i) {
    TM_CHECK(by_name_.emplace(defs_[i].name, i).second,
             "operator " + std::string(defs_[i].name) + " stands twice");
  }
}

const OpDef* OpRegistry::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &defs_[found->second];
}

const OpDef& OpRegistry::get(std::string_view name) const {
  const OpDef* def = find(name);
  TM_CHECK(def != nullptr, "no operator " + std::string(name));
  return *def;
}

}  // namespace tensormill::ir
