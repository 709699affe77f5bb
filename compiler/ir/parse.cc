#include <charconv>
#include <limits>

#include "compiler/ir/graph.h"
#include "compiler/ir/op_def.h"
#include "runtime/base/error.h"

namespace tensormill::ir {

namespace {

/// Regions nest one level (fused groups); a few more are room, an unbounded recursion is not.
constexpr int kMaxRegionDepth = 8;

class Parser {
public:
  Parser(std::string_view text, const OpRegistry& ops, const std::map<Digest, Tensor>& constants)
      : text_(text), ops_(ops), constants_(constants) {}

  Graph parse_file() {
    expect("graph");
    const std::string name = parse_quoted();
    if (accept("dims")) parse_symbols();
    if (accept("run_dims")) parse_run_symbols();
    if (accept("guards")) parse_guards();
    Graph graph = parse_body(0);
    graph.set_name(name);
    skip_space();
    if (at_ != text_.size()) fail("text after the graph");
    return graph;
  }

private:
  [[noreturn]] void fail(const std::string& what) const {
    size_t line = 1;
    size_t column = 1;
    for (size_t i = 0; i < at_ && i < text_.size(); ++i) {
      column = text_[i] == '\n' ? 1 : column + 1;
      line += text_[i] == '\n' ? 1 : 0;
    }
    throw Error(ErrorCode::kInvalidArgument, "graph text, line " + std::to_string(line) + ", column " +
                                                 std::to_string(column) + ": " + what);
  }

  void skip_space() {
    while (at_ < text_.size()) {
      if (text_[at_] == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t') {
        ++at_;
      } else {
        break;
      }
    }
  }

  bool peek(std::string_view token) {
    skip_space();
    return text_.substr(at_).substr(0, token.size()) == token;
  }
  bool accept(std::string_view token) {
    if (!peek(token)) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token)) fail("expected '" + std::string(token) + "'");
  }

  std::string parse_word() {
    skip_space();
    const size_t start = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 ||
                                  text_[at_] == '_' || text_[at_] == '.'))
      ++at_;
    if (start == at_) fail("expected a name");
    return std::string(text_.substr(start, at_ - start));
  }

  std::string parse_quoted() {
    expect("\"");
    std::string result;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] != '\\') {
        result += text_[at_++];
        continue;
      }
      ++at_;
      if (at_ + 2 < text_.size() && text_[at_] == 'x') {
        int code = 0;
        const auto parsed = std::from_chars(text_.data() + at_ + 1, text_.data() + at_ + 3, code, 16);
        if (parsed.ptr != text_.data() + at_ + 3) fail("bad escape");
        result += static_cast<char>(code);
        at_ += 3;
      } else if (at_ < text_.size()) {
        result += text_[at_++];
      }
    }
    if (at_ >= text_.size()) fail("text ends inside quotes");
    ++at_;
    return result;
  }

  std::string parse_value_name() {
    expect("%");
    return at_ < text_.size() && text_[at_] == '"' ? parse_quoted() : parse_word();
  }

  int64_t parse_int() {
    skip_space();
    int64_t value = 0;
    const auto parsed = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (parsed.ec != std::errc() || parsed.ptr == text_.data() + at_) fail("expected an integer");
    at_ = static_cast<size_t>(parsed.ptr - text_.data());
    return value;
  }

  /// Names of the graph's symbols and their hints.
  void parse_symbols() {
    symbols_ = std::make_shared<SymbolTable>();
    expect("(");
    while (!accept(")")) {
      const std::string name = parse_word();
      if (symbols_->hints().count(name) != 0) fail("dim " + name + " stands twice");
      expect(":");
      symbols_->add(name, parse_int());
      accept(",");
    }
  }

  /// Of those that a run binds, also what they are between.
  void parse_run_symbols() {
    if (symbols_ == nullptr) fail("run_dims without dims");
    expect("(");
    while (!accept(")")) {
      RunSymbol symbol{parse_word(), std::nullopt, std::nullopt};
      if (symbols_->hints().count(symbol.name) != 0) fail("dim " + symbol.name + " stands twice");
      expect(":");
      const int64_t hint = parse_int();
      if (accept("from")) symbol.low = parse_int();
      if (accept("to")) {
        symbol.high = te::parse_dim(parse_quoted());
        check_symbols(*symbol.high);
      }
      static_cast<void>(symbols_->add_run_time_symbol(symbol, hint));
      accept(",");
    }
  }

  /// What holds of them.
  void parse_guards() {
    if (symbols_ == nullptr) fail("guards without dims");
    expect("(");
    while (!accept(")")) {
      const std::string text = parse_quoted(), origin = parse_quoted();
      const std::optional<Guard> guard = parse_guard(text);
      if (!guard) fail("\"" + text + "\" is no guard");
      for (const te::Dim* dim : {&guard->left, &guard->right}) check_symbols(*dim);
      symbols_->add_guard(
          {guard->relation, guard->holds, guard->left, guard->right, origin, accept("demanded")});
    }
  }

  void check_symbols(const te::Dim& dim) const {
    for (const std::string& symbol : dim.symbols()) {
      if (symbols_ == nullptr || symbols_->hints().count(symbol) == 0) fail("no dim " + symbol);
    }
  }

  /// A dim, up to a comma or a bracket that is not inside it.
  SymInt parse_dim() {
    skip_space();
    const size_t start = at_;
    int open = 0;
    for (; at_ < text_.size(); ++at_) {
      const char letter = text_[at_];
      if (open == 0 && (letter == ',' || letter == ']' || letter == '}')) break;
      open += letter == '(' ? 1 : letter == ')' ? -1 : 0;
    }
    const te::Dim dim = te::parse_dim(text_.substr(start, at_ - start));
    check_symbols(dim);
    return {dim, symbols_};
  }

  double parse_double() {
    skip_space();
    double value = 0;
    const auto parsed = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (parsed.ec != std::errc() || parsed.ptr == text_.data() + at_) fail("expected a number");
    at_ = static_cast<size_t>(parsed.ptr - text_.data());
    return value;
  }

  template <typename Item>
  auto parse_list(Item&& item) {
    std::vector<decltype(item())> items;
    expect("[");
    if (accept("]")) return items;
    do items.push_back(item());
    while (accept(","));
    expect("]");
    return items;
  }

  ValueType parse_type() {
    const std::string word = parse_word();
    const std::optional<DType> dtype = dtype_from_name(word);
    if (!dtype) fail("no element type " + word);
    ValueType type{*dtype, parse_list([this] { return parse_dim(); })};
    num_bytes(type.shape.hints(), type.dtype);
    return type;
  }

  AttrValue parse_attr() {
    if (peek("\"")) return parse_quoted();
    if (accept("dims")) return SymShape(parse_list([this] { return parse_dim(); }));
    if (accept("dim ")) return parse_dim();
    if (accept("ints")) return parse_list([this] { return parse_int(); });
    if (accept("floats")) return parse_list([this] { return parse_double(); });
    if (accept("strings")) return parse_list([this] { return parse_quoted(); });
    const size_t start = at_;
    const size_t end = text_.find_first_of(",}", at_);
    const std::string_view token = text_.substr(start, end == std::string_view::npos ? end : end - start);
    if (const std::optional<DType> dtype = dtype_from_name(token)) {
      at_ += token.size();
      return *dtype;
    }
    if (token.find_first_of(".einf") != std::string_view::npos) return parse_double();
    return parse_int();
  }

  Tensor parse_constant() {
    const ValueType type = parse_type();
    if (accept("sha256:")) {
      const std::optional<Digest> digest = Digest::parse("sha256:" + parse_word());
      if (!digest) fail("malformed digest");
      const auto found = constants_.find(*digest);
      if (found == constants_.end()) fail("no bytes for constant " + digest->text());
      if (found->second.dtype() != type.dtype || found->second.num_elements() != num_elements(type.shape)) {
        fail("constant " + digest->text() + " has another size");
      }
      return found->second.reshaped(type.shape);
    }
    Tensor tensor(type.dtype, type.shape);
    expect("{");
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      if (i != 0) expect(",");
      if (is_float(type.dtype)) {
        tensor.set_element(i, parse_double());
      } else {
        tensor.set_element_int(i, parse_int());
      }
    }
    expect("}");
    return tensor;
  }

  ValueId lookup(const Graph& graph) {
    const std::string name = parse_value_name();
    const std::optional<ValueId> id = graph.find_value(name);
    if (!id) fail("no value " + name);
    return *id;
  }

  void new_name(const Graph& graph, const std::string& name) const {
    if (name.empty() || graph.find_value(name)) fail("value name \"" + name + "\" is taken or empty");
  }

  Graph parse_body(int depth) {
    if (depth > kMaxRegionDepth) fail("regions are nested deeper than " + std::to_string(kMaxRegionDepth));
    Graph graph(ops_);
    graph.set_symbols(symbols_);
    expect("(");
    while (!accept(")")) {
      const std::string name = parse_value_name();
      new_name(graph, name);
      expect(":");
      graph.add_input(name, parse_type());
      accept(",");
    }
    expect("{");
    while (!accept("return")) parse_statement(graph, depth);
    std::vector<ValueId> outputs;
    while (!accept("}")) {
      outputs.push_back(lookup(graph));
      accept(",");
    }
    graph.set_outputs(std::move(outputs));
    return graph;
  }

  void parse_statement(Graph& graph, int depth) {
    std::vector<std::string> names;
    std::vector<ValueType> types;
    do {
      names.push_back(parse_value_name());
      new_name(graph, names.back());
      if (accept(":")) types.push_back(parse_type());
    } while (accept(","));
    expect("=");
    if (accept("const ")) {
      graph.add_constant(names.front(), parse_constant());
      return;
    }
    const std::string op = parse_word();
    std::vector<ValueId> inputs;
    expect("(");
    while (!accept(")")) {
      inputs.push_back(accept("_") ? kAbsent : lookup(graph));
      accept(",");
    }
    Attrs attrs;
    if (accept("{")) {
      while (!accept("}")) {
        const std::string key = parse_word();
        expect(":");
        skip_space();
        attrs.set(key, parse_attr());
        accept(",");
      }
    }
    std::vector<std::string> origins;
    if (accept("from")) origins = parse_list([this] { return parse_quoted(); });
    const std::vector<ValueId> outputs = add(graph, op, inputs, attrs, origins, names, depth);
    if (outputs.size() != names.size())
      fail(op + " has " + std::to_string(outputs.size()) + " outputs, " + std::to_string(names.size()) +
           " are named");
    for (size_t i = 0; i < types.size(); ++i) {
      const ValueType& type = graph.value(outputs[i]).type;
      if (type.dtype != types[i].dtype || !same(type.shape, types[i].shape)) {
        fail("value " + names[i] + " has type " + to_string(graph.value(outputs[i]).type) +
             ", the text says " + to_string(types[i]));
      }
    }
  }

  std::vector<ValueId> add(Graph& graph, const std::string& op, const std::vector<ValueId>& inputs,
                           const Attrs& attrs, const std::vector<std::string>& origins,
                           const std::vector<std::string>& names, int depth) {
    if (op == "fused") {
      auto region = std::make_shared<Graph>(parse_body(depth + 1));
      if (region->inputs().size() != inputs.size()) fail("fused has other inputs than its region");
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i] == kAbsent || graph.value(inputs[i]).type != region->value(region->inputs()[i]).type) {
          fail("input " + std::to_string(i) + " of fused differs from its region's");
        }
      }
      return graph.add_fused(inputs, region, origins, names);
    }
    const OpDef* def = ops_.find(op);
    if (def == nullptr) fail("no operator " + op);
    const int count = static_cast<int>(inputs.size());
    if (count < def->min_inputs || (def->max_inputs >= 0 && count > def->max_inputs)) {
      fail(op + " has " + std::to_string(count) + " inputs");
    }
    return graph.add_node(op, inputs, attrs, origins, names);
  }

  std::string_view text_;
  const OpRegistry& ops_;
  const std::map<Digest, Tensor>& constants_;
  std::shared_ptr<SymbolTable> symbols_;
  size_t at_ = 0;
};

}  // namespace

Graph parse_graph(std::string_view text, const OpRegistry& ops, const std::map<Digest, Tensor>& constants) {
  return as_invalid_model([&] { return Parser(text, ops, constants).parse_file(); });
}

}  // namespace tensormill::ir
