#include "compiler/te/printer.h"
#include "compiler/te/text.h"

namespace tensormill::te {

std::string_view scope_name(Scope scope) {
  switch (scope) {
    case Scope::kSharedWorkspace:
      return "shared";
    case Scope::kWorkerWorkspace:
      return "worker";
    case Scope::kRegister:
      return "register";
    default:
      return "parameter";
  }
}

void Printer::line() { text_.append(static_cast<size_t>(depth_) * 2, ' '); }

void Printer::open() {
  text_ += " {\n";
  ++depth_;
}

void Printer::close() {
  --depth_;
  line();
  text_ += "}";
}

void Printer::shape(DType dtype, const std::vector<Expr>& extents) {
  text_ += ": ";
  text_ += dtype_name(dtype);
  text_ += "[";
  list(extents);
  text_ += "]";
}

void Printer::block(const Stmt& stmt) {
  open();
  this->stmt(stmt);
  close();
}

void Printer::loop(const StmtNode& node) {
  text_ += for_kind_name(node.for_kind);
  text_ += " " + name(node.var.get(), node.var->name) + " = ";
  expr(node.min);
  text_ += ", ";
  expr(node.extent);
  block(node.body);
}

void Printer::store(const StmtNode& node) {
  text_ += name(node.buffer.get(), node.buffer->name) + "[";
  list(node.indices);
  if (node.mask) {
    text_ += "; ";
    expr(node.mask);
  }
  text_ += "] = ";
  expr(node.value);
}

void Printer::stmt(const Stmt& stmt) {
  const StmtNode& node = *stmt;
  if (node.op == StmtOp::kSeq) {
    for (const Stmt& child : node.children) this->stmt(child);
    return;
  }
  line();
  switch (node.op) {
    case StmtOp::kFor:
      loop(node);
      break;
    case StmtOp::kStore:
      store(node);
      break;
    case StmtOp::kAllocate:
      text_ += "allocate " + name(node.buffer.get(), node.buffer->name);
      shape(node.buffer->dtype, node.buffer->shape);
      text_ += " ";
      text_ += scope_name(node.buffer->scope);
      if (node.offset != 0) text_ += " at " + std::to_string(node.offset);
      block(node.body);
      break;
    case StmtOp::kIf:
      text_ += "if ";
      expr(node.condition);
      block(node.body);
      if (node.else_body) {
        text_ += " else";
        block(node.else_body);
      }
      break;
    default:
      text_ += "let " + name(node.var.get(), node.var->name) + ": ";
      text_ += to_string(Type{node.var->dtype, node.var->lanes}) + " = ";
      expr(node.value);
      block(node.body);
      break;
  }
  text_ += "\n";
}

void Printer::function(const Function& function) {
  text_ += "function " + function.name;
  open();
  for (size_t i = 0; i < function.dims.size(); ++i) {
    if (i == 0) line();
    text_ += i == 0 ? "dims " : ", ";
    text_ += name(function.dims[i].get(), function.dims[i]->name);
    if (i + 1 == function.dims.size()) text_ += "\n";
  }
  for (size_t i = 0; i < function.parameters.size(); ++i) {
    const Parameter& parameter = function.parameters[i];
    line();
    text_ += parameter.is_output ? "out " : "in ";
    text_ += name(parameter.buffer.get(), parameter.buffer->name);
    shape(parameter.buffer->dtype, parameter.buffer->shape);
    if (i < function.aliases.size() && function.aliases[i] >= 0) {
      text_ += " alias " + std::to_string(function.aliases[i]);
    }
    text_ += "\n";
  }
  if (function.shared_workspace_bytes != 0 || function.worker_workspace_bytes != 0) {
    line();
    text_ += "workspace " + std::to_string(function.shared_workspace_bytes) + " " +
             std::to_string(function.worker_workspace_bytes) + "\n";
  }
  line();
  text_ += "body";
  block(function.body);
  text_ += "\n";
  close();
  text_ += "\n";
}

std::string print(const Stmt& stmt) {
  Printer printer;
  printer.stmt(stmt);
  return printer.take();
}

std::string print(const Function& function) {
  Printer printer;
  printer.function(function);
  return printer.take();
}

}  // namespace tensormill::te
