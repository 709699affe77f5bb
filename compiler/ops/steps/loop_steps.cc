/// loop_begin and loop_end: the nodes between which a loop's body stands. The executor runs them
/// (runtime/package/loops.h says what they do); ir/loops.h tells which nodes are the body.
#include "compiler/ir/loops.h"
#include "compiler/ops/steps/executor_step.h"
#include "compiler/ops/type_rules.h"

namespace tensormill::ops::loop_step_ops {

std::vector<ir::OpDef> family();

namespace {

size_t count_of(const ir::InferContext& context, const char* attribute) {
  const int64_t count = attr_int(context.attrs, attribute);
  if (count < 0 || count > static_cast<int64_t>(context.inputs.size()))
    fail(std::string(attribute) + " is " + std::to_string(count) + " for " +
         std::to_string(context.inputs.size()) + " operands");
  return static_cast<size_t>(count);
}

void check_one(const ir::InferContext& context, size_t index, DType dtype) {
  if (!(input(context, index) == ir::ValueType{dtype, {1}}))
    fail("input " + std::to_string(index) + " is " + to_string(input(context, index)) + ", expected " +
         to_string(ir::ValueType{dtype, {1}}));
}

std::vector<ir::ValueType> infer_begin(const ir::InferContext& context) {
  const size_t carried = count_of(context, "carried");
  size_t next = 0;
  attr_int(context.attrs, "loop");
  if (attr_int(context.attrs, "max_trips") != 0) check_one(context, next++, DType::kInt64);
  if (attr_int(context.attrs, "condition") != 0) check_one(context, next++, DType::kBool);
  if (next + carried > context.inputs.size()) fail("fewer operands than carried values");
  std::vector<ir::ValueType> results{made_type(DType::kInt64, {})};
  for (const size_t end = next + carried; next < end; ++next) results.push_back(input(context, next));
  const size_t first = next;
  for (; next < context.inputs.size(); ++next) {
    const ir::ValueType& scanned = input(context, next);
    if (scanned.shape.empty() || scanned.shape[0] != input(context, first).shape[0])
      fail("scanned values are " + to_string(input(context, first)) + " and " + to_string(scanned));
    results.push_back(made_type(scanned.dtype, ir::SymShape(scanned.shape.begin() + 1, scanned.shape.end())));
  }
  return results;
}

std::vector<ir::ValueType> infer_end(const ir::InferContext& context) {
  const size_t carried = count_of(context, "carried");
  const ir::SymInt trips = attr_dim(context.attrs, "trips");
  size_t next = 1;
  attr_int(context.attrs, "loop");
  attr_int(context.attrs, "counted");
  if (!(input(context, 0) == ir::ValueType{DType::kInt64, {}}))
    fail("input 0 is " + to_string(input(context, 0)) + ", no number of an iteration");
  if (attr_int(context.attrs, "condition") != 0) check_one(context, next++, DType::kBool);
  if (next + carried > context.inputs.size()) fail("fewer operands than carried values");
  std::vector<ir::ValueType> results;
  for (const size_t end = next + carried; next < end; ++next) results.push_back(input(context, next));
  for (; next < context.inputs.size(); ++next) {
    ir::SymShape stacked = input(context, next).shape;
    stacked.insert(stacked.begin(), trips);
    results.push_back(made_type(input(context, next).dtype, std::move(stacked)));
  }
  results.push_back(made_type(DType::kInt64, {1}));
  return results;
}

}  // namespace

std::vector<ir::OpDef> family() {
  return {
      executor_step(
          ir::kLoopBegin, 0, -1, &infer_begin,
          "max_trips? (i64 [1]), condition? (bool [1]), initial values, scanned values -> number of the "
          "iteration (i64 []), carried values, the iteration's row of each scanned value; attributes loop "
          "(its number in the graph), carried (count), max_trips, condition (ints: whether they are there)"),
      executor_step(
          ir::kLoopEnd, 0, -1, &infer_end,
          "number of the iteration, condition? (bool [1]), next values, parts -> final values, parts "
          "stacked along a new first axis of extent trips, count of iterations (i64 [1]); attributes loop, "
          "carried, condition as loop_begin, trips, counted (int: the count may be less than trips)")};
}

}  // namespace tensormill::ops::loop_step_ops
