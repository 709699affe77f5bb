#include "compiler/te/printer.h"
#include "compiler/te/text.h"

namespace tensormill::te {
namespace {

void collect_dims(const std::vector<Expr>& shape, std::vector<Var>& dims) {
  for (const Expr& extent : shape) {
    for_each_expr(extent, [&dims](const Expr& expr) {
      if (expr->op != ExprOp::kVar) return;
      for (const Var& dim : dims) {
        if (dim == expr->var) return;
      }
      dims.push_back(expr->var);
    });
  }
}

}  // namespace

/// Names tell nothing: equal programs of differently named tensors must give equal text.
void Printer::name_program(const Program& program) {
  std::vector<Var> dims;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    set_name(program.inputs[i].get(), "p" + std::to_string(i));
    collect_dims(program.inputs[i]->shape, dims);
  }
  const std::vector<Tensor> stages = stages_of(program);
  for (size_t i = 0; i < stages.size(); ++i) {
    set_name(stages[i].get(), "s" + std::to_string(i));
    collect_dims(stages[i]->shape, dims);
    if (!stages[i]->reduction) continue;
    for (const Axis& axis : stages[i]->reduction->axes) collect_dims({axis.extent}, dims);
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    set_name(dims[i].get(), "n" + std::to_string(i));
    if (i == 0) line();
    text_ += i == 0 ? "dims n0" : ", n" + std::to_string(i);
    if (i + 1 == dims.size()) text_ += "\n";
  }
}

void Printer::stage(const TensorNode& stage) {
  const auto axes = [this](const std::vector<Axis>& list, const char* prefix) {
    for (size_t i = 0; i < list.size(); ++i) {
      const std::string axis_name = prefix + std::to_string(i);
      set_name(list[i].var.get(), axis_name);
      text_ += (i > 0 ? ", " : "") + axis_name + ": ";
      expr(list[i].extent);
    }
  };
  line();
  text_ += stage.reduction ? "reduce " : "compute ";
  text_ += name(&stage, stage.name) + "[";
  axes(stage.axes, "i");
  text_ += "]";
  if (stage.reduction) {
    text_ += " over [";
    axes(stage.reduction->axes, "r");
    text_ += "]";
    for (size_t i = 0; i < stage.reduction->left.size(); ++i) {
      set_name(stage.reduction->left[i].get(), "a" + std::to_string(i));
      set_name(stage.reduction->right[i].get(), "b" + std::to_string(i));
    }
  }
  open();
  for (size_t i = 0; i < stage.dtypes.size(); ++i) {
    line();
    text_ += dtype_name(stage.dtypes[i]);
    if (stage.reduction) {
      text_ += " source ";
      expr(stage.reduction->source[i]);
      text_ += " identity ";
      expr(stage.reduction->identity[i]);
    } else {
      text_ += " = ";
      expr(stage.body[i]);
    }
    text_ += "\n";
  }
  for (size_t i = 0; stage.reduction && i < stage.dtypes.size(); ++i) {
    line();
    text_ += "combine ";
    expr(stage.reduction->combine[i]);
    text_ += "\n";
  }
  close();
  text_ += "\n";
}

void Printer::program(const Program& program) {
  text_ += "program";
  open();
  name_program(program);
  for (const Tensor& input : program.inputs) {
    line();
    text_ += "input " + name(input.get(), input->name);
    shape(input->dtypes[0], input->shape);
    text_ += "\n";
  }
  for (const Tensor& tensor : stages_of(program)) stage(*tensor);
  for (const Tensor& output : program.outputs) {
    line();
    text_ += "output " + name(output.get(), output->name) + "\n";
  }
  close();
  text_ += "\n";
}

std::string print(const Program& program) {
  Printer printer;
  printer.program(program);
  return printer.take();
}

}  // namespace tensormill::te
