#include "compiler/ops/steps/executor_step.h"

#include "runtime/base/error.h"

namespace tensormill::ops {

namespace {

[[noreturn]] void refuse_value(const ir::ReferenceContext& /*context*/) {
  throw Error(ErrorCode::kTensorData, "a step of the executor has no value by itself");
}

}  // namespace

ir::OpDef executor_step(std::string_view name, int32_t least, int32_t most,
                        std::vector<ir::ValueType> (*infer)(const ir::InferContext&), std::string_view doc) {
  ir::OpDef def;
  def.name = name;
  def.min_inputs = least;
  def.max_inputs = most;
  def.infer = infer;
  def.reference = &refuse_value;
  def.doc = doc;
  return def;
}

}  // namespace tensormill::ops
