// Flattens buffers to one dimension and places workspace buffers: offsets follow the nesting of allocations,
// so that buffers which never live together share bytes. Everything is 64-byte aligned.
#include <algorithm>
#include <unordered_map>

#include "compiler/lower/passes.h"
#include "compiler/lower/range_rewriter.h"
#include "compiler/te/rewrite_args.h"
#include "runtime/base/error.h"

namespace tensormill::lower {

using te::Expr;
using te::Stmt;

namespace {

constexpr int64_t kAlignment = 64;

class Flattener : public RangeRewriter {
public:
  te::Buffer flat(const te::Buffer& buffer) {
    te::Buffer& result = flat_[buffer.get()];
    if (!result) {
      Expr size(1);
      for (const Expr& extent : buffer->shape) size = size * extent;
      TM_CHECK(te::as_int(size) || buffer->scope == te::Scope::kParameter,
               "buffer " + buffer->name + " has a symbolic extent");
      result = te::make_buffer(buffer->name, buffer->dtype, {size}, buffer->scope);
    }
    return result;
  }
  int64_t shared_bytes() const { return shared_.peak; }
  int64_t worker_bytes() const { return worker_.peak; }

  using RangeRewriter::rewrite;
  Expr rewrite(const Expr& expr) override { return te::normalize(flatten_loads(expr), ranges_); }

protected:
  Stmt rewrite_store(const Stmt& stmt) override {
    const Expr index = rewrite(flat_index(stmt->buffer, stmt->indices));
    return te::make_store(flat(stmt->buffer), {index}, rewrite(stmt->value),
                          stmt->mask ? rewrite(stmt->mask) : Expr());
  }

  Stmt rewrite_allocate(const Stmt& stmt) override {
    const te::Buffer buffer = flat(stmt->buffer);
    if (buffer->scope == te::Scope::kRegister) return te::make_allocate(buffer, rewrite(stmt->body));
    Arena& arena = buffer->scope == te::Scope::kSharedWorkspace ? shared_ : worker_;
    const int64_t bytes = constant_or(buffer->shape[0], 0) * static_cast<int64_t>(dtype_bytes(buffer->dtype));
    const int64_t offset = arena.used;
    // 64 readable bytes follow every buffer.
    arena.used += (bytes + kAlignment - 1) / kAlignment * kAlignment + kAlignment;
    arena.peak = std::max(arena.peak, arena.used);
    Stmt body = rewrite(stmt->body);
    arena.used = offset;
    return te::make_allocate(buffer, std::move(body), offset);
  }

private:
  struct Arena {
    int64_t used = 0;
    int64_t peak = 0;
  };

  static Expr flat_index(const te::Buffer& buffer, const std::vector<Expr>& indices) {
    Expr index(0);
    for (size_t d = 0; d < indices.size(); ++d) {
      index = d == 0 ? indices[0] : index * buffer->shape[d] + indices[d];
    }
    return index;
  }

  Expr flatten_loads(const Expr& expr) {
    if (expr->args.empty() && expr->op != te::ExprOp::kLoad) return expr;
    te::RewrittenArgs rewritten =
        te::rewrite_args(expr, [this](const Expr& part) { return flatten_loads(part); });
    if (expr->op != te::ExprOp::kLoad) return std::move(rewritten).of(expr);
    Expr index = flat_index(expr->buffer, rewritten.args);
    if (index->type.lanes > 1) index = vector_index(expr->buffer, rewritten.args);
    return te::load(flat(expr->buffer), {index}, rewritten.mask);
  }

  // A ramp in one dimension only stays a ramp.
  static Expr vector_index(const te::Buffer& buffer, const std::vector<Expr>& indices) {
    std::vector<Expr> scalar = indices;
    const Expr* lane_index = nullptr;
    Expr stride(1);
    for (size_t d = indices.size(); d-- > 0;) {
      if (indices[d]->type.lanes > 1) {
        if (lane_index || indices[d]->op != te::ExprOp::kRamp) return flat_index(buffer, indices);
        lane_index = &indices[d];
        scalar[d] = indices[d]->args[0];
        break;
      }
      stride = stride * buffer->shape[d];
    }
    for (const Expr& index : scalar) {
      if (index->type.lanes > 1) return flat_index(buffer, indices);
    }
    return te::ramp(flat_index(buffer, scalar), (*lane_index)->args[1] * stride, (*lane_index)->type.lanes);
  }

  std::unordered_map<const te::BufferNode*, te::Buffer> flat_;
  Arena shared_, worker_;
};

}  // namespace

te::Function run_storage(const te::Function& input, const target::Target&) {
  Flattener flattener;
  te::Function result = input;
  for (te::Parameter& parameter : result.parameters) parameter.buffer = flattener.flat(parameter.buffer);
  result.body = flattener.rewrite(input.body);
  result.shared_workspace_bytes = flattener.shared_bytes();
  result.worker_workspace_bytes = flattener.worker_bytes();
  return result;
}

}  // namespace tensormill::lower
