/// Prefetches of weights: they appear where panels are read several times, and change no value.
#include <gtest/gtest.h>

#include "compiler/te/interpret.h"
#include "tests/codegen/support.h"

namespace tensormill::codegen_test {
namespace {

using te::Expr;

constexpr int64_t kReadings = 7, kLanes = 16;

te::Stmt serial(const te::Var& var, int64_t extent, te::Stmt body) {
  return te::make_for(var, Expr(0), Expr(extent), te::ForKind::kSerial, std::move(body));
}

/// out[p, t] = sum over k of x[t, k] * w[p, k]: `outer` puts the loops over panels p and readings t around
/// it; the loop over k is cut into pieces of `piece`.
te::Function panels(int64_t count, int64_t depth,
                    te::Stmt (*outer)(int64_t count, const std::function<te::Stmt(Expr, Expr)>& body),
                    int64_t piece = 0) {
  const te::Buffer x = flat("x", DType::kFloat32, kReadings * depth);
  const te::Buffer w = flat("w", DType::kFloat32, count * depth * kLanes);
  const te::Buffer out = flat("out", DType::kFloat32, count * kReadings * kLanes);
  const auto body = [&](const Expr& panel, const Expr& reading) {
    const te::Buffer sum = flat("sum", DType::kFloat32, kLanes, te::Scope::kRegister);
    const te::Var whole = te::make_var("whole"), step = te::make_var("step");
    const Expr k = piece > 0 ? whole * Expr(piece) + step : Expr(step);
    const Expr all = te::ramp(Expr(0), Expr(1), kLanes), zero = te::float_imm(DType::kFloat32, 0, kLanes);
    const Expr left = te::broadcast(te::load(x, {reading * Expr(depth) + k}), kLanes);
    const Expr right =
        te::load(w, {te::ramp(panel * Expr(depth * kLanes) + k * Expr(kLanes), Expr(1), kLanes)});
    const te::Stmt add = te::make_store(sum, {all}, te::fma(left, right, te::load(sum, {all})));
    const Expr place = te::ramp((panel * Expr(kReadings) + reading) * Expr(kLanes), Expr(1), kLanes);
    const te::Stmt loop =
        piece > 0 ? serial(whole, depth / piece, serial(step, piece, add)) : serial(step, depth, add);
    return te::make_allocate(sum, te::make_seq({te::make_store(sum, {all}, zero), loop,
                                                te::make_store(out, {place}, te::load(sum, {all}))}));
  };
  return make_function("panels", {x, w, out}, 1, outer(count, body));
}

te::Stmt nested(int64_t count, const std::function<te::Stmt(Expr, Expr)>& body) {
  const te::Var panel = te::make_var("panel"), reading = te::make_var("reading");
  return serial(panel, count, serial(reading, kReadings, body(panel, reading)));
}

te::Stmt by_task(int64_t count, const std::function<te::Stmt(Expr, Expr)>& body) {
  const te::Var panel = te::make_var("panel"), reading = te::make_var("reading");
  return te::make_for(panel, Expr(0), Expr(count), te::ForKind::kParallel,
                      serial(reading, kReadings, body(panel, reading)));
}

/// As nested, for as many readings as its argument says.
te::Function symbolic(int64_t piece = 0) {
  te::Function function = panels(8, 1024, nested, piece);
  const te::Stmt outer = function.body, inner = outer->body;
  const te::Var readings = te::make_var("readings");
  function.dims = {readings};
  function.body = serial(
      outer->var, 8, te::make_for(inner->var, Expr(0), Expr(readings), te::ForKind::kSerial, inner->body));
  return function;
}

te::Stmt divided(int64_t count, const std::function<te::Stmt(Expr, Expr)>& body) {
  const te::Var both = te::make_var("both");
  return serial(both, count * kReadings,
                body(te::floordiv(both, Expr(kReadings)), te::floormod(both, Expr(kReadings))));
}

/// All panels for some rows, and then for others.
te::Stmt again(int64_t count, const std::function<te::Stmt(Expr, Expr)>& body) {
  const te::Var all = te::make_var("all"), reading = te::make_var("reading");
  return serial(all, 2 * count,
                serial(reading, kReadings, body(te::floormod(Expr(all), Expr(count)), reading)));
}

te::Stmt once(int64_t count, const std::function<te::Stmt(Expr, Expr)>& body) {
  const te::Var panel = te::make_var("panel");
  return serial(panel, count, body(panel, Expr(0)));
}

/// For vectors of kLanes floats, whatever this machine has: how often the optimizer copies a loop depends on
/// how many instructions a vector takes.
codegen::Object emit_wide(const te::Function& function) {
  const target::Target target = parse("llvm -mcpu=x86-64-v4 -mtriple=x86_64-linux-gnu -num-cores=1");
  return codegen::make_llvm_backend()->emit(function, target, {true, false});
}

int64_t count_prefetches(const te::Function& function) {
  const codegen::Object object = emit_wide(function);
  int64_t count = 0;
  for (size_t at = 0; (at = object.ir_text.find("call void @llvm.prefetch", at)) != std::string::npos; ++at)
    ++count;
  return count;
}
bool has_prefetch(const te::Function& function) { return count_prefetches(function) > 0; }

TEST(Prefetch, PanelsThatAreReadAgainFetchTheNext) {
  EXPECT_TRUE(has_prefetch(panels(8, 1024, nested)));
  EXPECT_TRUE(has_prefetch(panels(8, 1024, by_task)));
  EXPECT_TRUE(has_prefetch(panels(8, 1024, divided)));
  EXPECT_TRUE(has_prefetch(panels(8, 1024, again)));
  EXPECT_TRUE(has_prefetch(symbolic()));
}

/// 16 lines over seven readings: three a reading, outside of the loop.
TEST(Prefetch, ShortLoopsFetchTheirShareBefore) {
  EXPECT_EQ(count_prefetches(panels(8, 1024, nested, 16)), 3);
  EXPECT_EQ(count_prefetches(panels(8, 1024, divided, 16)), 3);
  EXPECT_EQ(count_prefetches(symbolic(16)), 4) << "of four readings";
}

/// The last reading leaves the second half of the depth out; what it fetches of it is fetched all the same.
te::Function skipping() {
  const int64_t count = 8, depth = 1024, piece = 16;
  const te::Buffer x = flat("x", DType::kFloat32, kReadings * depth);
  const te::Buffer w = flat("w", DType::kFloat32, count * depth * kLanes);
  const te::Buffer out = flat("out", DType::kFloat32, count * kReadings * kLanes);
  const auto body = [&](const Expr& panel, const Expr& reading) {
    const te::Buffer sum = flat("sum", DType::kFloat32, kLanes, te::Scope::kRegister);
    const te::Var half = te::make_var("half"), whole = te::make_var("whole"), step = te::make_var("step");
    const Expr k = half * Expr(depth / 2) + whole * Expr(piece) + step;
    const Expr all = te::ramp(Expr(0), Expr(1), kLanes), zero = te::float_imm(DType::kFloat32, 0, kLanes);
    const Expr left = te::broadcast(te::load(x, {reading * Expr(depth) + k}), kLanes);
    const Expr right =
        te::load(w, {te::ramp(panel * Expr(depth * kLanes) + k * Expr(kLanes), Expr(1), kLanes)});
    const te::Stmt add =
        serial(step, piece, te::make_store(sum, {all}, te::fma(left, right, te::load(sum, {all}))));
    const te::Stmt guarded =
        serial(whole, depth / 2 / piece, te::make_if(half + reading < Expr(kReadings), add));
    const Expr place = te::ramp((panel * Expr(kReadings) + reading) * Expr(kLanes), Expr(1), kLanes);
    return te::make_allocate(sum, te::make_seq({te::make_store(sum, {all}, zero), serial(half, 2, guarded),
                                                te::make_store(out, {place}, te::load(sum, {all}))}));
  };
  return make_function("skipping", {x, w, out}, 1, nested(count, body));
}

TEST(Prefetch, LoopsThatAConditionLeavesOutFetchBeforeIt) {
  const codegen::Object object = emit_wide(skipping());
  EXPECT_EQ(count_prefetches(skipping()), 3);
  EXPECT_LT(object.ir_text.find("call void @llvm.prefetch"), object.ir_text.find("label %then"));
}

TEST(Prefetch, SmallBuffersAndPanelsThatAreReadOnceDoNot) {
  EXPECT_FALSE(has_prefetch(panels(2, 64, nested)));
  EXPECT_FALSE(has_prefetch(panels(8, 1024, once)));
}

TEST(Prefetch, ChangesNoValue) {
  const std::vector<te::Function> functions = {panels(8, 1024, nested),
                                               panels(8, 1024, by_task),
                                               panels(8, 1024, divided),
                                               panels(8, 1024, nested, 16),
                                               panels(8, 1024, divided, 16),
                                               skipping(),
                                               symbolic(),
                                               symbolic(16)};
  for (const te::Function& function : functions) {
    std::vector<Tensor> interpreted;
    for (const te::Parameter& parameter : function.parameters) {
      Tensor tensor = Tensor::zeros(DType::kFloat32, {*te::as_int(parameter.buffer->shape[0])});
      for (int64_t i = 0; i < tensor.num_elements(); ++i)
        tensor.set_element(i, static_cast<double>(i * 37 % 101) / 64 - 0.75);
      interpreted.push_back(tensor);
    }
    std::vector<Tensor> computed;
    for (const Tensor& tensor : interpreted) computed.push_back(tensor.clone());
    const std::vector<int64_t> dims(function.dims.size(), kReadings);
    EXPECT_EQ(te::interpret(function, interpreted, dims).code, 0);
    EXPECT_EQ(Kernel(function, host()).run(computed, dims, 2).code, 0);
    EXPECT_EQ(difference(computed[2], interpreted[2]), "");
  }
}

}  // namespace
}  // namespace tensormill::codegen_test
