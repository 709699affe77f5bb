#include <iterator>

#include "compiler/ops/ops.h"

namespace tensormill::ops {

#define TM_OPS(name)               \
  namespace name {                 \
  std::vector<ir::OpDef> family(); \
  }
#include "compiler/ops/ops.def"
#undef TM_OPS

namespace {

void append(std::vector<ir::OpDef>& all, std::vector<ir::OpDef> family) {
  all.insert(all.end(), std::make_move_iterator(family.begin()), std::make_move_iterator(family.end()));
}

std::vector<ir::OpDef> collect() {
  std::vector<ir::OpDef> all;
#define TM_OPS(name) append(all, name::family());
#include "compiler/ops/ops.def"
#undef TM_OPS
  return all;
}

}  // namespace

const ir::OpRegistry& standard_ops() {
  static const ir::OpRegistry registry(collect());
  return registry;
}

}  // namespace tensormill::ops
