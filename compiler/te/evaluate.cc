#include <unordered_map>

#include "compiler/te/interpret.h"
#include "runtime/base/error.h"

namespace tensormill::te {
namespace {

using Buffers = std::unordered_map<const TensorNode*, std::vector<Buffer>>;

/// Reads of tensors as loads of their buffers.
class BufferReads : public Rewriter {
public:
  using Rewriter::rewrite;
  explicit BufferReads(const Buffers& buffers) : buffers_(buffers) {}

  Expr rewrite(const Expr& expr) override {
    if (const auto found = done_.find(expr.get()); found != done_.end()) return found->second;
    Expr result = Rewriter::rewrite(expr);
    if (result->op == ExprOp::kRead) {
      result = load(buffers_.at(result->tensor.get())[static_cast<size_t>(result->output)], result->args);
    }
    done_.emplace(expr.get(), result);
    return result;
  }

private:
  const Buffers& buffers_;
  std::unordered_map<const ExprNode*, Expr> done_;
};

Stmt nest(const std::vector<Axis>& axes, Stmt body) {
  for (size_t i = axes.size(); i-- > 0;) {
    body = make_for(axes[i].var, Expr(0), axes[i].extent, ForKind::kSerial, body);
  }
  return body;
}

/// All values are taken before the first is stored: the parts of a tuple depend on each other's old values.
Stmt reduction_step(const Reduction& reduction, const std::vector<Buffer>& outputs,
                    const std::vector<Expr>& at, BufferReads& reads) {
  std::vector<Stmt> stores;
  std::vector<Var> next;
  for (size_t i = 0; i < outputs.size(); ++i) {
    next.push_back(make_var("next", outputs[i]->dtype));
    stores.push_back(make_store(outputs[i], at, Expr(next[i])));
  }
  Stmt body = make_seq(std::move(stores));
  for (size_t i = outputs.size(); i-- > 0;) body = make_let(next[i], reduction.combine[i], body);
  for (size_t i = outputs.size(); i-- > 0;) {
    body = make_let(reduction.right[i], reads.rewrite(reduction.source[i]), body);
    body = make_let(reduction.left[i], load(outputs[i], at), body);
  }
  return nest(reduction.axes, body);
}

Stmt stage_body(const TensorNode& stage, const std::vector<Buffer>& outputs, BufferReads& reads) {
  std::vector<Expr> at;
  for (const Axis& axis : stage.axes) at.emplace_back(axis.var);
  std::vector<Stmt> steps;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Expr value = stage.reduction ? stage.reduction->identity[i] : reads.rewrite(stage.body[i]);
    steps.push_back(make_store(outputs[i], at, value));
  }
  if (stage.reduction) steps.push_back(reduction_step(*stage.reduction, outputs, at, reads));
  return nest(stage.axes, make_seq(std::move(steps)));
}

/// The symbolic extents of the inputs, with the values that the given tensors have there.
void bind_dims(const Program& program, const std::vector<tensormill::Tensor>& inputs, Function& function,
               std::vector<int64_t>& dims) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::vector<Expr>& shape = program.inputs[i]->shape;
    TM_CHECK(shape.size() == inputs[i].shape().size(), "input " + std::to_string(i) + " has rank " +
                                                           std::to_string(inputs[i].shape().size()) +
                                                           ", not " + std::to_string(shape.size()));
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d]->op != ExprOp::kVar) continue;
      bool known = false;
      for (const Var& dim : function.dims) known = known || dim == shape[d]->var;
      if (known) continue;
      function.dims.push_back(shape[d]->var);
      dims.push_back(inputs[i].shape()[d]);
    }
  }
}

Shape evaluated_shape(const std::vector<Expr>& shape, const Function& function,
                      const std::vector<int64_t>& dims) {
  Shape result;
  for (Expr extent : shape) {
    for (size_t i = 0; i < dims.size(); ++i) extent = substitute(extent, function.dims[i], Expr(dims[i]));
    const int64_t* value = as_int(extent);
    TM_CHECK(value != nullptr, "extent over a dim that no input has");
    result.push_back(*value);
  }
  return result;
}

}  // namespace

std::vector<tensormill::Tensor> evaluate(const Program& program,
                                         const std::vector<tensormill::Tensor>& inputs) {
  TM_CHECK(inputs.size() == program.inputs.size(), "program takes " + std::to_string(program.inputs.size()) +
                                                       " inputs, not " + std::to_string(inputs.size()));
  Function function;
  function.name = "evaluate";
  std::vector<int64_t> dims;
  bind_dims(program, inputs, function, dims);
  Buffers buffers;
  std::vector<tensormill::Tensor> arguments = inputs;
  std::unordered_map<const TensorNode*, size_t> position;
  const auto add = [&](const Tensor& tensor, bool is_output) {
    position.emplace(tensor.get(), function.parameters.size());
    for (const DType dtype : tensor->dtypes) {
      buffers[tensor.get()].push_back(make_buffer(tensor->name, dtype, tensor->shape, Scope::kParameter));
      function.parameters.push_back({buffers[tensor.get()].back(), is_output});
      if (is_output) arguments.emplace_back(dtype, evaluated_shape(tensor->shape, function, dims));
    }
  };
  for (const Tensor& input : program.inputs) add(input, false);
  const std::vector<Tensor> stages = stages_of(program);
  for (const Tensor& stage : stages) add(stage, true);
  BufferReads reads(buffers);
  std::vector<Stmt> bodies;
  for (const Tensor& stage : stages) bodies.push_back(stage_body(*stage, buffers.at(stage.get()), reads));
  function.body = make_seq(std::move(bodies));
  const InterpretResult result = interpret(function, arguments, dims);
  TM_CHECK(result.code == 0, "index " + std::to_string(result.error_index) + " is out of range");
  std::vector<tensormill::Tensor> outputs;
  for (const Tensor& output : program.outputs) outputs.push_back(arguments[position.at(output.get())]);
  return outputs;
}

}  // namespace tensormill::te
