#include "runtime/host_ops/registry.h"

#include <vector>

#include "runtime/host_ops/data_steps.h"
#include "runtime/host_ops/dense_steps.h"
#include "runtime/host_ops/fourier.h"
#include "runtime/host_ops/growing_steps.h"
#include "runtime/host_ops/matrix_steps.h"
#include "runtime/host_ops/picture_steps.h"
#include "runtime/host_ops/recurrent.h"
#include "runtime/host_ops/roi_align.h"
#include "runtime/host_ops/sequence_steps.h"
#include "runtime/host_ops/special.h"
#include "runtime/host_ops/text_changes.h"
#include "runtime/host_ops/text_rows.h"
#include "runtime/host_ops/text_steps.h"

namespace tensormill::host_ops {

namespace {

struct Row {
  std::string_view name;
  HostFunction function;
};

const std::vector<Row>& rows() {
  static const std::vector<Row> table = {
#define TM_HOST_OP(name, function) {name, &function},
#include "runtime/host_ops/host_ops.def"
#undef TM_HOST_OP
  };
  return table;
}

}  // namespace

HostFunction find_host_op(std::string_view name) {
  for (const Row& row : rows()) {
    if (row.name == name) return row.function;
  }
  return nullptr;
}

}  // namespace tensormill::host_ops
