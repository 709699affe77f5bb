#include <cctype>
#include <charconv>

#include "compiler/frontend/pytorch/model.h"
#include "runtime/base/error.h"

namespace tensormill::frontend::pytorch {

namespace {

constexpr size_t kMaxExprBytes = 64 << 10;
constexpr int kMaxExprDepth = 64;

SymExpr integer_expr(int64_t value) { return {SymExpr::Kind::kInteger, value, {}, {}}; }
SymExpr call_expr(std::string name, std::vector<SymExpr> args) {
  return {SymExpr::Kind::kCall, 0, std::move(name), std::move(args)};
}

/// Sums and products of many terms are one call, so that an expression is as deep as it is written.
SymExpr joined(const char* name, SymExpr left, SymExpr right) {
  if (left.kind == SymExpr::Kind::kCall && left.name == name) {
    left.args.push_back(std::move(right));
    return left;
  }
  return call_expr(name, {std::move(left), std::move(right)});
}

/// sum := term (+|- term)*; term := factor (*|/|//|% factor)*; factor := -factor | atom [** factor];
/// atom := number | name [( arguments )] | ( sum ).
class ExprParser {
public:
  explicit ExprParser(std::string_view text) : text_(text) {
    if (text.size() > kMaxExprBytes) fail("it has " + std::to_string(text.size()) + " bytes");
  }

  SymExpr parse() {
    SymExpr expr = sum();
    if (peek() != '\0') fail("something stands behind it");
    if (expr.kind == SymExpr::Kind::kReal) fail("a number that is no integer");
    return expr;
  }

private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::kInvalidModel, "expression \"" + std::string(text_.substr(0, 200)) + "\", at " +
                                              std::to_string(at_) + ": " + what);
  }

  char peek() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(std::string_view token) {
    peek();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!take(token)) fail("expected " + std::string(token));
  }

  /// Counts how deep the parser is in itself.
  class Level {
  public:
    explicit Level(ExprParser& parser) : parser_(parser) {
      if (++parser_.depth_ > kMaxExprDepth) parser_.fail("it is nested too deeply");
    }
    ~Level() { --parser_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

  private:
    ExprParser& parser_;
  };

  SymExpr sum() {
    const Level level(*this);
    SymExpr left = term();
    for (;;) {
      if (take("+")) {
        left = joined("Add", std::move(left), term());
      } else if (take("-")) {
        left = joined("Add", std::move(left), call_expr("Mul", {integer_expr(-1), term()}));
      } else {
        return left;
      }
    }
  }

  SymExpr term() {
    SymExpr left = factor();
    for (;;) {
      peek();
      if (text_.substr(at_).starts_with("**")) return left;
      if (take("//")) {
        left = call_expr("FloorDiv", {std::move(left), factor()});
      } else if (take("*")) {
        left = joined("Mul", std::move(left), factor());
      } else if (take("/")) {
        left = call_expr("Div", {std::move(left), factor()});
      } else if (take("%")) {
        left = call_expr("Mod", {std::move(left), factor()});
      } else {
        return left;
      }
      if (++operators_ > kMaxExprDepth * 64) fail("too many operators");
    }
  }

  SymExpr factor() {
    const Level level(*this);
    if (take("-")) {
      SymExpr inner = factor();
      if (inner.kind == SymExpr::Kind::kInteger) return integer_expr(-inner.value);
      return call_expr("Mul", {integer_expr(-1), std::move(inner)});
    }
    SymExpr base = atom();
    if (take("**")) return call_expr("Pow", {std::move(base), factor()});
    return base;
  }

  SymExpr atom() {
    if (take("(")) {
      SymExpr inner = sum();
      expect(")");
      return inner;
    }
    const char first = peek();
    if (std::isdigit(static_cast<unsigned char>(first)) != 0) return number();
    if (std::isalpha(static_cast<unsigned char>(first)) == 0 && first != '_') fail("no operand");
    const std::string name = word();
    if (!take("(")) return {SymExpr::Kind::kSymbol, 0, name, {}};
    if (name == "Symbol" || name == "Dummy") return {SymExpr::Kind::kSymbol, 0, quoted(), {}};
    if (name == "Float") return {SymExpr::Kind::kReal, 0, quoted(), {}};
    SymExpr call = call_expr(name, {});
    while (!take(")")) {
      if (!call.args.empty()) expect(",");
      call.args.push_back(sum());
    }
    if (name == "Integer" && call.args.size() == 1 && call.args[0].kind == SymExpr::Kind::kInteger)
      return std::move(call.args[0]);
    return call;
  }

  SymExpr number() {
    int64_t value = 0;
    const auto parsed = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (parsed.ec != std::errc()) fail("a number past 64 bits");
    at_ = static_cast<size_t>(parsed.ptr - text_.data());
    if (at_ >= text_.size() || text_[at_] != '.') return integer_expr(value);
    const size_t begin = static_cast<size_t>(parsed.ptr - text_.data());
    SymExpr real{SymExpr::Kind::kReal, 0, std::to_string(value), {}};
    for (++at_; at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0;) ++at_;
    real.name += text_.substr(begin, at_ - begin);
    return real;
  }

  std::string word(std::string_view more = "_.") {
    const size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 ||
                                  more.find(text_[at_]) != std::string_view::npos))
      ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  /// Symbol('s0', positive=True, integer=True): what is assumed of it stands in the ranges, too;
  /// Float('1.5', precision=53).
  std::string quoted() {
    const bool is_double = peek() == '"';
    expect(is_double ? "\"" : "'");
    const std::string name = word("_.+-");
    expect(is_double ? "\"" : "'");
    while (take(",")) {
      peek();
      word();
      expect("=");
      peek();
      word();
    }
    expect(")");
    return name;
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
  int operators_ = 0;
};

}  // namespace

SymExpr parse_sym_expr(std::string_view text) { return ExprParser(text).parse(); }

std::string to_string(const SymExpr& expr) {
  if (expr.kind == SymExpr::Kind::kInteger) return std::to_string(expr.value);
  if (expr.kind == SymExpr::Kind::kSymbol || expr.kind == SymExpr::Kind::kReal) return expr.name;
  const bool is_sum = expr.name == "Add", is_product = expr.name == "Mul";
  std::string text = is_sum || is_product ? "(" : expr.name + "(";
  for (size_t i = 0; i < expr.args.size(); ++i) {
    if (i > 0) text += is_sum ? " + " : is_product ? "*" : ",";
    text += to_string(expr.args[i]);
  }
  return text + ")";
}

std::string to_string(const SymDim& dim) {
  if (dim.value) return std::to_string(*dim.value);
  if (dim.expr) return to_string(*dim.expr);
  return dim.hint ? std::to_string(*dim.hint) : "?";
}

}  // namespace tensormill::frontend::pytorch
