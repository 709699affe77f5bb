#include "compiler/te/parse_guard.h"
#include "compiler/te/parser.h"
#include "compiler/te/text.h"

namespace tensormill::te {

std::vector<Axis> Parser::axes() {
  std::vector<Axis> result;
  expect("[");
  if (!is("]")) {
    do {
      const std::string name = new_name("an axis");
      expect(":");
      Expr extent = expr();
      if (extent->type != Type{}) fail("extent of axis \"" + name + "\" is not i64");
      // Axes of different stages are different variables, whatever their names.
      variables_.erase(name);
      result.push_back({bind(name, Type{}), extent});
    } while (accept(","));
  }
  expect("]");
  return result;
}

/// A scalar of the type that its line gives.
Expr Parser::part(DType dtype) {
  Expr result = expr();
  if (result->type != (Type{dtype, 1})) {
    fail("expected a value of type " + std::string(dtype_name(dtype)) + ", found " + to_string(result->type));
  }
  return result;
}

void Parser::reduction_body(TensorNode& node, Reduction& reduction) {
  while (!is("combine") && !is("}")) {
    const DType dtype = this->dtype();
    node.dtypes.push_back(dtype);
    expect("source");
    reduction.source.push_back(part(dtype));
    expect("identity");
    reduction.identity.push_back(part(dtype));
  }
  std::vector<std::string> names;
  const auto side = [&](const std::string& prefix, std::vector<Var>& variables) {
    for (size_t i = 0; i < node.dtypes.size(); ++i) {
      names.push_back(prefix + std::to_string(i));
      if (active_.contains(names.back())) fail("name \"" + names.back() + "\" is in use");
      variables_.erase(names.back());
      variables.push_back(bind(names.back(), Type{node.dtypes[i], 1}));
    }
  };
  side("a", reduction.left);
  side("b", reduction.right);
  for (const DType dtype : node.dtypes) {
    expect("combine");
    reduction.combine.push_back(part(dtype));
  }
  for (const std::string& name : names) unbind(name);
}

Tensor Parser::stage(bool is_reduction) {
  TensorNode node;
  node.name = new_name("a stage");
  node.axes = axes();
  for (const Axis& axis : node.axes) node.shape.push_back(axis.extent);
  auto reduction = std::make_shared<Reduction>();
  if (is_reduction) {
    expect("over");
    reduction->axes = axes();
  }
  expect("{");
  if (is_reduction) {
    reduction_body(node, *reduction);
  } else {
    while (!is("}")) {
      node.dtypes.push_back(dtype());
      expect("=");
      node.body.push_back(part(node.dtypes.back()));
    }
  }
  if (node.dtypes.empty()) fail("stage \"" + node.name + "\" computes nothing");
  expect("}");
  for (const std::vector<Axis>* list : {&node.axes, &reduction->axes}) {
    for (const Axis& axis : *list) unbind(axis.var->name);
  }
  if (is_reduction) node.reduction = std::move(reduction);
  return std::make_shared<const TensorNode>(std::move(node));
}

Program Parser::program() {
  Program program;
  expect("program");
  expect("{");
  dims();
  while (accept("input")) {
    const std::string name = new_name("an input");
    expect(":");
    const DType dtype = this->dtype();
    std::vector<Expr> shape = indices(nullptr);
    program.inputs.push_back(placeholder(name, dtype, std::move(shape)));
    tensors_[name] = program.inputs.back();
    active_.insert(name);
  }
  while (is("compute") || is("reduce")) {
    const bool is_reduction = word("a stage") == "reduce";
    Tensor tensor = stage(is_reduction);
    active_.insert(tensor->name);
    tensors_[tensor->name] = std::move(tensor);
  }
  while (accept("output")) {
    const std::string name = word("a stage");
    const auto tensor = tensors_.find(name);
    if (tensor == tensors_.end()) fail("unknown tensor \"" + name + "\"");
    program.outputs.push_back(tensor->second);
  }
  expect("}");
  expect_end();
  return program;
}

Program parse_program(std::string_view text) { return Parser(text).program(); }

}  // namespace tensormill::te
