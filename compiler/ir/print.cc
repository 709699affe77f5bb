#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

#include "compiler/ir/printer.h"
#include "runtime/base/error.h"
#include "runtime/base/hex.h"

namespace tensormill::ir {

namespace {

constexpr int64_t kPrintInFull = 16;

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      result += "\\x";
      append_hex(result, byte);
    } else {
      result += c;
    }
  }
  return result + "\"";
}

std::string value_name(const Value& value) {
  bool plain = !value.name.empty();
  for (char c : value.name)
    plain = plain && (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.');
  return "%" + (plain ? value.name : quoted(value.name));
}

std::string number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 40> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  std::string text(buffer.data(), end);
  // A float stays a float when it is read back.
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

template <typename T, typename Print>
std::string list(const std::vector<T>& values, Print&& print) {
  std::string text = "[";
  for (size_t i = 0; i < values.size(); ++i) text += (i == 0 ? "" : ", ") + print(values[i]);
  return text + "]";
}

struct PrintAttr {
  std::string operator()(int64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const { return number(value); }
  std::string operator()(const std::string& value) const { return quoted(value); }
  std::string operator()(DType value) const { return std::string(dtype_name(value)); }
  std::string operator()(const std::vector<int64_t>& values) const {
    return "ints" + list(values, [](int64_t v) { return std::to_string(v); });
  }
  std::string operator()(const SymInt& value) const { return "dim " + to_string(value); }
  std::string operator()(const SymShape& values) const {
    return "dims" + list(values, [](const SymInt& v) { return to_string(v); });
  }
  std::string operator()(const std::vector<double>& values) const { return "floats" + list(values, number); }
  std::string operator()(const std::vector<std::string>& values) const {
    return "strings" + list(values, [](const std::string& v) { return quoted(v); });
  }
};

}  // namespace

std::string to_string(const AttrValue& value) { return std::visit(PrintAttr{}, value); }

namespace {

std::string constant_text(const Tensor& tensor, GraphPrinter& printer) {
  const bool full = tensor.num_elements() <= kPrintInFull;
  std::string text = "const " + to_string(ValueType{tensor.dtype(), tensor.shape()}) + " ";
  if (!full) return text + printer.digest_text(tensor);
  text += "{";
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    if (i != 0) text += ", ";
    text += is_float(tensor.dtype()) ? number(tensor.element_as_double(i))
                                     : std::to_string(tensor.element_as_int(i));
  }
  return text + "}";
}

std::string body_text(const Graph& graph, GraphPrinter& printer, const std::string& indent);

std::string node_text(const Graph& graph, const Node& node, GraphPrinter& printer,
                      const std::string& indent) {
  std::string text;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const Value& value = graph.value(node.outputs[i]);
    text += (i == 0 ? "" : ", ") + value_name(value) + ": " + to_string(value.type);
  }
  text += " = " + node.op + "(";
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    text += i == 0 ? "" : ", ";
    text += node.inputs[i] == kAbsent ? "_" : value_name(graph.value(node.inputs[i]));
  }
  text += ")";
  if (!node.attrs.all().empty()) text += " " + to_string(node.attrs);
  if (!node.origins.empty()) {
    text += " from " + list(node.origins, [](const std::string& origin) { return quoted(origin); });
  }
  if (node.region != nullptr) text += " " + body_text(*node.region, printer, indent + "  ");
  return text;
}

std::string body_text(const Graph& graph, GraphPrinter& printer, const std::string& indent) {
  std::string text = "(";
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const Value& value = graph.value(graph.inputs()[i]);
    text += (i == 0 ? "" : ", ") + value_name(value) + ": " + to_string(value.type);
  }
  text += ") {\n";
  for (const Value& value : graph.values()) {
    if (value.constant)
      text += indent + "  " + value_name(value) + " = " + constant_text(*value.constant, printer) + "\n";
  }
  for (const Node& node : graph.nodes())
    text += indent + "  " + node_text(graph, node, printer, indent) + "\n";
  text += indent + "  return ";
  for (size_t i = 0; i < graph.outputs().size(); ++i)
    text += (i == 0 ? "" : ", ") + value_name(graph.value(graph.outputs()[i]));
  return text + "\n" + indent + "}";
}

std::string guards_text(const SymbolTable& table) {
  std::string text = "guards(";
  for (const Guard& guard : table.guards())
    text +=
        "\n  " + quoted(to_string(guard)) + " " + quoted(guard.origin) + (guard.demanded ? " demanded" : "");
  return text + ") ";
}

}  // namespace

namespace {

/// `run_dims (run0: 23 from "0" to "N", run1: 8)`
std::string run_dims_text(const SymbolTable& table) {
  std::string text = "run_dims (";
  for (const RunSymbol& symbol : table.run_time_symbols()) {
    text +=
        (text.back() == '(' ? "" : ", ") + symbol.name + ": " + std::to_string(table.hints().at(symbol.name));
    if (symbol.low) text += " from " + std::to_string(*symbol.low);
    if (symbol.high) text += " to " + quoted(symbol.high->to_string());
  }
  return text + ") ";
}

}  // namespace

std::string to_string(const Attrs& attrs) {
  std::string text = "{";
  for (const auto& [name, value] : attrs.all())
    text += (text.size() == 1 ? "" : ", ") + name + ": " + to_string(value);
  return text + "}";
}

std::string GraphPrinter::print(const Graph& graph) {
  std::string text = "graph " + quoted(graph.name()) + " ";
  if (graph.symbols() != nullptr) {
    text += "dims(";
    const SymbolTable& table = *graph.symbols();
    for (const auto& [name, hint] : table.hints()) {
      if (!table.is_run_time(te::Dim::symbol(name)))
        text += (text.back() == '(' ? "" : ", ") + name + ": " + std::to_string(hint);
    }
    text += ") ";
    if (!table.run_time_symbols().empty()) text += run_dims_text(table);
    if (!graph.symbols()->guards().empty()) text += guards_text(*graph.symbols());
  }
  text += body_text(graph, *this, "") + "\n";
  before_ = std::exchange(now_, {});
  return text;
}

std::string GraphPrinter::digest_text(const Tensor& tensor) {
  const std::pair<const void*, size_t> memory(tensor.data(), tensor.num_bytes());
  if (const auto known = now_.find(memory); known != now_.end()) return known->second.digest.text();
  if (const auto known = before_.find(memory); known != before_.end()) {
    return now_.emplace(memory, known->second).first->second.digest.text();
  }
  const std::span<const std::byte> bytes(static_cast<const std::byte*>(tensor.data()), tensor.num_bytes());
  return now_.emplace(memory, Known{tensor, Digest::of(bytes)}).first->second.digest.text();
}

std::string print(const Graph& graph) { return GraphPrinter().print(graph); }

Digest hash(const Graph& graph) {
  // The text names large constants by the digest of their bytes, so the text is the whole content.
  return Digest::of(print(graph));
}

}  // namespace tensormill::ir
