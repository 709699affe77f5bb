#include "compiler/ir/checked_list.h"

namespace tensormill::ir {

void throw_out_of_range(ListKind kind, int64_t index, int64_t size) {
  throw OutOfRange(kind == ListKind::kShape
                       ? "axis " + std::to_string(index) + " of a shape of rank " + std::to_string(size)
                       : "element " + std::to_string(index) + " of a list of " + std::to_string(size));
}

}  // namespace tensormill::ir
