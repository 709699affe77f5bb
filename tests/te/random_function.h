// Random functions that run without faults, for property tests of text, simplification and interpretation.
#pragma once

#include <memory>

#include "compiler/te/stmt.h"
#include "tests/te/random_expr.h"

namespace tensormill::te::testing {

/// Loops, guards, lets, scratch buffers, vectors and masks over two f32 inputs and an i64 and an f32 output
/// of kExtent elements. Every index is taken modulo the extent, and every buffer is written before it is
/// read.
class RandomFunction {
public:
  static constexpr int64_t kExtent = 24;

  explicit RandomFunction(uint32_t seed) : random_(seed, {Expr(0)}), seed_(seed) {
    for (const char* name : {"x", "y"}) add(name, DType::kFloat32, false);
    add("n", DType::kInt64, true);
    add("z", DType::kFloat32, true);
  }

  Function make() {
    function_.name = "random_" + std::to_string(seed_);
    const Var clear = make_var("clear");
    const Stmt zero = make_seq({make_store(buffer(2), {Expr(clear)}, Expr(0)),
                                make_store(buffer(3), {Expr(clear)}, float_imm(DType::kFloat32, 0))});
    function_.body = make_seq({make_for(clear, 0, kExtent, ForKind::kSerial, zero), stmt(4)});
    return function_;
  }

private:
  const Buffer& buffer(size_t index) const { return function_.parameters[index].buffer; }

  void add(const char* name, DType dtype, bool is_output) {
    function_.parameters.push_back({make_buffer(name, dtype, {Expr(kExtent)}, Scope::kParameter), is_output});
    readable_.push_back(function_.parameters.back().buffer);
  }

  RandomExpr indices() const {
    std::vector<Expr> leaves = {Expr(3)};
    for (const Var& var : scope_) leaves.emplace_back(var);
    return RandomExpr(static_cast<uint32_t>(random_.below(1 << 20)), std::move(leaves));
  }

  Expr index() const { return floormod(indices().index(2), kExtent); }

  Expr real(int depth, const Expr& at, const Expr& mask) {
    if (depth == 0 || random_.below(5) == 0) {
      if (random_.below(3) == 0)
        return float_imm(DType::kFloat32, 0.25 * static_cast<double>(random_.below(40) - 20));
      const Buffer& from =
          readable_[static_cast<size_t>(random_.below(static_cast<int64_t>(readable_.size())))];
      const Expr value = load(from, {at}, mask);
      return from->dtype == DType::kFloat32 ? value : cast(DType::kFloat32, value);
    }
    const Expr a = real(depth - 1, at, mask), b = real(depth - 1, at, mask);
    switch (random_.below(9)) {
      case 0:
        return a + b;
      case 1:
        return a - b;
      case 2:
        return a * b;
      case 3:
        return min(a, b);
      case 4:
        return max(a, -b);
      case 5:
        return fma(a, b, a);
      case 6:
        return select(a < b, a, te::make(ExprOp::kAbs, {b}));
      case 7:
        return cast(DType::kFloat32, lookup(cast(DType::kUInt8, a), table()));
      default:
        return te::make(ExprOp::kRound, {a}) / float_imm(DType::kFloat32, 2);
    }
  }

  std::shared_ptr<const ByteTable> table() const {
    ByteTable bytes{};
    const auto step = static_cast<size_t>(random_.below(255) + 1);
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * step + 5);
    return std::make_shared<const ByteTable>(bytes);
  }

  Stmt store() {
    if (random_.below(3) == 0) return make_store(buffer(2), {index()}, indices().index(3));
    if (random_.below(2) == 0) return make_store(buffer(3), {index()}, real(3, index(), {}));
    const Expr lanes = ramp(floormod(indices().index(2), kExtent - 4), 1, 8);
    const Expr mask = lanes < broadcast(Expr(kExtent), 8);
    const Expr value = real(2, lanes, mask);
    return make_store(buffer(3), {lanes}, value->type.lanes == 8 ? value : broadcast(value, 8), mask);
  }

  Stmt scoped(const Var& var, int depth) {
    scope_.push_back(var);
    Stmt body = stmt(depth - 1);
    scope_.pop_back();
    return body;
  }

  Stmt stmt(int depth) {
    if (depth == 0) return store();
    switch (random_.below(7)) {
      case 0:
        return make_seq({stmt(depth - 1), stmt(depth - 1)});
      case 1: {
        const Stmt other = random_.below(2) == 0 ? stmt(depth - 1) : Stmt();
        return make_if(indices().condition(2), stmt(depth - 1), other);
      }
      case 2: {
        const Var var = make_var("v");
        const Expr value = indices().index(2);
        return make_let(var, value, scoped(var, depth));
      }
      case 3: {
        const Buffer scratch =
            make_buffer("scratch", DType::kFloat32, {Expr(kExtent)}, Scope::kWorkerWorkspace);
        const Var fill = make_var("i");
        const Stmt first = make_for(fill, 0, kExtent, ForKind::kSerial,
                                    make_store(scratch, {Expr(fill)}, cast(DType::kFloat32, Expr(fill))));
        readable_.push_back(scratch);
        const Stmt rest = stmt(depth - 1);
        readable_.pop_back();
        return make_allocate(scratch, make_seq({first, rest}));
      }
      default: {
        const Var var = make_var("i");
        const Expr extent =
            random_.below(3) == 0 ? min(floormod(indices().index(1), 6), Expr(5)) : Expr(random_.below(5));
        const Expr min = random_.below(3) == 0 ? indices().index(1) : Expr(0);
        return make_for(var, min, extent, ForKind::kSerial, scoped(var, depth));
      }
    }
  }

  mutable RandomExpr random_;
  uint32_t seed_;
  Function function_;
  std::vector<Buffer> readable_;
  std::vector<Var> scope_;
};

}  // namespace tensormill::te::testing
