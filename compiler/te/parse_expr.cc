#include <algorithm>
#include <charconv>
#include <optional>

#include "compiler/te/op_class.h"
#include "compiler/te/parse_guard.h"
#include "compiler/te/parser.h"
#include "compiler/te/printer.h"
#include "runtime/base/hex.h"
#include "runtime/base/narrow.h"

namespace tensormill::te {
namespace {

constexpr int kMaxDepth = 1000;
constexpr int kMaxLanes = 4096;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

size_t number_length(std::string_view text) {
  size_t length = 0;
  const auto digits = [&] {
    while (length < text.size() && is_digit(text[length])) ++length;
  };
  digits();
  if (length + 1 < text.size() && text[length] == '.' && is_digit(text[length + 1])) {
    ++length;
    digits();
  }
  if (length < text.size() && text[length] == 'e') {
    size_t exponent = length + 1;
    if (exponent < text.size() && (text[exponent] == '-' || text[exponent] == '+')) ++exponent;
    if (exponent < text.size() && is_digit(text[exponent])) {
      length = exponent;
      digits();
    }
  }
  return length;
}

size_t symbol_length(std::string_view text) {
  static constexpr std::string_view kPairs[] = {"<<", ">>", "==", "!=", "<=", ">="};
  for (const std::string_view pair : kPairs) {
    if (text.substr(0, 2) == pair) return 2;
  }
  return std::string_view("{}()[],;:=.+-*/%&|^<>").find(text[0]) != std::string_view::npos ? 1 : 0;
}

std::optional<ExprOp> op_named(std::string_view name) {
  static constexpr std::string_view kNames[] = {
#define TM_EXPR_OP(enumerator, name, arity, group, meaning) name,
#include "compiler/te/expr_ops.def"
#undef TM_EXPR_OP
  };
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (kNames[i] == name) return static_cast<ExprOp>(i);
  }
  return std::nullopt;
}

std::optional<ExprOp> infix_op(std::string_view symbol) {
  for (size_t i = 0; i <= static_cast<size_t>(ExprOp::kCheckIndex); ++i) {
    if (infix_symbol(static_cast<ExprOp>(i)) == symbol) return static_cast<ExprOp>(i);
  }
  return std::nullopt;
}

}  // namespace

void fail_parse(std::string_view text, size_t position, const std::string& message) {
  const std::string_view before = text.substr(0, position);
  const size_t line = static_cast<size_t>(std::count(before.begin(), before.end(), '\n')) + 1;
  const size_t start = before.rfind('\n');
  const size_t column = start == std::string_view::npos ? position + 1 : position - start;
  throw Error(ErrorCode::kInvalidArgument,
              "line " + std::to_string(line) + ", column " + std::to_string(column) + ": " + message);
}

std::vector<Token> tokenize(std::string_view text) {
  std::vector<Token> tokens;
  size_t at = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
      ++at;
      continue;
    }
    Token token{Token::Kind::kSymbol, {}, at};
    size_t length = 0;
    if (is_letter(c)) {
      token.kind = Token::Kind::kWord;
      while (at + length < text.size() && (is_letter(text[at + length]) || is_digit(text[at + length])))
        ++length;
    } else if (is_digit(c)) {
      token.kind = Token::Kind::kNumber;
      length = number_length(text.substr(at));
    } else {
      length = symbol_length(text.substr(at));
    }
    if (length == 0) fail_parse(text, at, "unexpected character");
    token.text = text.substr(at, length);
    tokens.push_back(token);
    at += length;
  }
  tokens.push_back({Token::Kind::kEnd, {}, text.size()});
  return tokens;
}

void Parser::fail(const std::string& message) const { fail_parse(text_, peek().position, message); }

bool Parser::accept(std::string_view symbol) {
  if (!is(symbol)) return false;
  ++at_;
  return true;
}

void Parser::expect(std::string_view symbol) {
  if (!accept(symbol))
    fail("expected \"" + std::string(symbol) + "\", found \"" + std::string(peek().text) + "\"");
}

void Parser::expect_end() {
  if (peek().kind != Token::Kind::kEnd) fail("expected the end, found \"" + std::string(peek().text) + "\"");
}

std::string Parser::word(const char* what) {
  if (peek().kind != Token::Kind::kWord) fail(std::string("expected ") + what);
  return std::string(tokens_[at_++].text);
}

std::string Parser::new_name(const char* what) {
  const std::string name = word(what);
  --at_;
  if (is_reserved_word(name)) fail("\"" + name + "\" is a word of the language");
  if (active_.contains(name)) fail("name \"" + name + "\" is in use");
  ++at_;
  return name;
}

int64_t Parser::integer() {
  const bool negative = accept("-");
  const std::string digits = (negative ? "-" : "") + std::string(peek().text);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (peek().kind != Token::Kind::kNumber || error != std::errc() || end != digits.data() + digits.size()) {
    fail("expected an integer");
  }
  ++at_;
  return value;
}

DType Parser::dtype() {
  const std::string name = word("a type");
  const std::optional<DType> dtype = dtype_from_name(name);
  if (dtype && !is_narrow(*dtype)) return *dtype;
  --at_;
  fail("unknown type \"" + name + "\"");
}

Type Parser::type() {
  const std::string name = word("a type");
  --at_;
  const size_t cross = name.find('x');
  const std::optional<DType> dtype = dtype_from_name(name.substr(0, cross));
  if (!dtype || is_narrow(*dtype)) fail("unknown type \"" + name + "\"");
  Type type{*dtype, 1};
  if (cross != std::string::npos) {
    const char* const first = name.data() + cross + 1;
    const char* const last = name.data() + name.size();
    const auto [end, error] = std::from_chars(first, last, type.lanes);
    if (error != std::errc() || end != last || type.lanes < 2 || type.lanes > kMaxLanes) {
      fail("number of lanes of \"" + name + "\" is not 2 to " + std::to_string(kMaxLanes));
    }
  }
  ++at_;
  return type;
}

std::shared_ptr<const ByteTable> Parser::table() {
  const std::string name = word("a table");
  ByteTable bytes{};
  if (name[0] != 't' || !hex_bytes(std::string_view(name).substr(1), bytes)) {
    --at_;
    fail("a table is t and two digits for each of 256 bytes");
  }
  return std::make_shared<const ByteTable>(bytes);
}

std::vector<Expr> Parser::exprs(std::string_view end) {
  std::vector<Expr> result;
  if (is(end)) return result;
  do {
    result.push_back(expr());
  } while (accept(","));
  return result;
}

Expr Parser::constant() {
  const bool negative = accept("-");
  const Token token = peek();
  ++at_;
  const Type type =
      accept(":") ? this->type()
                  : Type{token.text == "true" || token.text == "false" ? DType::kBool : DType::kInt64, 1};
  const std::string text = (negative ? "-" : "") + std::string(token.text);
  const char* const last = text.data() + text.size();
  const auto complete = [&](const std::from_chars_result& result) {
    if (result.ec != std::errc() || result.ptr != last) {
      fail_parse(text_, token.position, "\"" + text + "\" is not a constant of type " + to_string(type));
    }
  };
  if (type.dtype == DType::kBool) {
    if (text != "true" && text != "false")
      fail_parse(text_, token.position, "\"" + text + "\" is not a bool");
    return int_imm(DType::kBool, text == "true" ? 1 : 0, type.lanes);
  }
  if (type.dtype == DType::kFloat64) {
    double value = 0;
    complete(std::from_chars(text.data(), last, value));
    return float_imm(type.dtype, value, type.lanes);
  }
  if (type.is_float()) {
    float value = 0;
    complete(std::from_chars(text.data(), last, value));
    return float_imm(type.dtype, value, type.lanes);
  }
  if (type.dtype == DType::kUInt64) {
    uint64_t value = 0;
    complete(std::from_chars(text.data(), last, value));
    return int_imm(type.dtype, static_cast<int64_t>(value), type.lanes);
  }
  int64_t value = 0;
  complete(std::from_chars(text.data(), last, value));
  if (wrap_to(type.dtype, value) != value) {
    fail_parse(text_, token.position, "\"" + text + "\" does not fit " + to_string(type));
  }
  return int_imm(type.dtype, value, type.lanes);
}

Expr Parser::binary() {
  expect("(");
  Expr a = expr();
  const std::optional<ExprOp> op = peek().kind == Token::Kind::kSymbol ? infix_op(peek().text) : std::nullopt;
  if (!op) fail("expected an operator, found \"" + std::string(peek().text) + "\"");
  ++at_;
  Expr b = expr();
  expect(")");
  return guarded([&] { return make(*op, {std::move(a), std::move(b)}); });
}

Expr Parser::call() {
  const std::string name = word("an operator");
  const ExprOp op = *op_named(name);
  DType dtype = DType::kInt64;
  int64_t lanes = 1;
  std::shared_ptr<const ByteTable> bytes;
  if (op == ExprOp::kCast || op == ExprOp::kReinterpret) {
    expect(".");
    dtype = this->dtype();
  } else if (op == ExprOp::kRamp || op == ExprOp::kBroadcast) {
    expect(".");
    lanes = integer();
    if (lanes < 2 || lanes > kMaxLanes) fail("number of lanes is not 2 to " + std::to_string(kMaxLanes));
  } else if (op == ExprOp::kLookup) {
    expect(".");
    bytes = table();
  }
  expect("(");
  std::vector<Expr> args = exprs(")");
  expect(")");
  if (static_cast<int>(args.size()) != expr_op_arity(op)) {
    fail(name + " takes " + std::to_string(expr_op_arity(op)) + " args, not " + std::to_string(args.size()));
  }
  return guarded([&] {
    switch (op) {
      case ExprOp::kCast:
        return cast(dtype, args[0]);
      case ExprOp::kReinterpret:
        return reinterpret(dtype, args[0]);
      case ExprOp::kLookup:
        return lookup(args[0], bytes);
      case ExprOp::kRamp:
        return ramp(args[0], args[1], static_cast<int>(lanes));
      case ExprOp::kBroadcast:
        return broadcast(args[0], static_cast<int>(lanes));
      default:
        return make(op, std::move(args));
    }
  });
}

std::vector<Expr> Parser::indices(Expr* mask) {
  expect("[");
  std::vector<Expr> result;
  if (!is("]") && !is(";")) result = exprs("]");
  if (mask != nullptr && accept(";")) *mask = expr();
  expect("]");
  return result;
}

Expr Parser::access() {
  const std::string name = word("a name");
  if (!active_.contains(name)) {
    --at_;
    fail("unknown name \"" + name + "\"");
  }
  if (const auto buffer = buffers_.find(name); buffer != buffers_.end() && is("[")) {
    Expr mask;
    std::vector<Expr> at = indices(&mask);
    return guarded([&] { return load(buffer->second, std::move(at), mask); });
  }
  if (const auto tensor = tensors_.find(name); tensor != tensors_.end()) {
    const int64_t output = accept(".") ? integer() : 0;
    std::vector<Expr> at = indices(nullptr);
    if (output < 0 || output > 1000) fail("no output " + std::to_string(output));
    return guarded([&] { return read(tensor->second, std::move(at), static_cast<int>(output)); });
  }
  const auto variable = variables_.find(name);
  if (variable == variables_.end()) fail("\"" + name + "\" is not a value");
  return Expr(variable->second);
}

Expr Parser::expr() {
  if (++depth_ > kMaxDepth) fail("expression is more than " + std::to_string(kMaxDepth) + " levels deep");
  const Token& token = peek();
  Expr result;
  if (token.text == "(") {
    result = binary();
  } else if (token.kind == Token::Kind::kNumber || token.text == "-" || token.text == "true" ||
             token.text == "false" || token.text == "inf" || token.text == "nan") {
    result = constant();
  } else if (token.kind == Token::Kind::kWord && op_named(token.text) &&
             op_class(*op_named(token.text)) != OpClass::kMemory &&
             op_class(*op_named(token.text)) != OpClass::kConstant) {
    result = call();
  } else {
    result = access();
  }
  --depth_;
  return result;
}

}  // namespace tensormill::te
