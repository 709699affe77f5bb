#include <algorithm>
#include <charconv>
#include <limits>

#include "runtime/base/error.h"
#include "runtime/base/extents/extent.h"
#include "runtime/base/extents/extent_functions.h"

namespace tensormill {
namespace {

using ExtentCode = Extent::Code;

bool starts_name(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool continues_name(char c) { return starts_name(c) || is_digit(c) || c == '.'; }

/// How tightly an operation binds: operands of less are printed in parentheses.
int strength(ExtentCode code) {
  switch (code) {
    case ExtentCode::kAdd:
    case ExtentCode::kSub:
      return 1;
    case ExtentCode::kMul:
    case ExtentCode::kFloorDiv:
    case ExtentCode::kFloorMod:
      return 2;
    case ExtentCode::kNeg:
      return 3;
    default:
      return 4;
  }
}

class ExtentParser {
public:
  explicit ExtentParser(std::string_view text) : text_(text) {}

  Extent extent() {
    if (text_.size() > Extent::kMaxTextBytes) {
      throw Error(ErrorCode::kTooLarge, "a formula of an extent has " + std::to_string(text_.size()) +
                                            " bytes, more than " + std::to_string(Extent::kMaxTextBytes));
    }
    sum();
    return {std::move(ops_), std::move(symbols_)};
  }
  size_t place() const { return at_; }
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::kInvalidArgument, "a formula of an extent: " + what + " at byte " +
                                                 std::to_string(at_ + 1) + " of \"" +
                                                 std::string(text_.substr(0, 80)) + "\"");
  }
  bool take(std::string_view token) {
    skip_spaces();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  bool at_end() {
    skip_spaces();
    return at_ == text_.size();
  }

private:
  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  char peek() {
    skip_spaces();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  void expect(std::string_view token) {
    if (!take(token)) fail("\"" + std::string(token) + "\" is missing");
  }
  void emit(ExtentCode code, int64_t value = 0) {
    if (ops_.size() == Extent::kMaxOps) {
      throw Error(ErrorCode::kTooLarge,
                  "a formula of an extent has more than " + std::to_string(Extent::kMaxOps) + " operations");
    }
    ops_.push_back({code, value});
  }

  void sum() {
    if (++nesting_ > Extent::kMaxNesting) {
      throw Error(ErrorCode::kTooLarge, "a formula of an extent is nested deeper than " +
                                            std::to_string(Extent::kMaxNesting) + " levels");
    }
    product();
    while (true) {
      const bool add = take("+");
      if (!add && !take("-")) break;
      product();
      emit(add ? ExtentCode::kAdd : ExtentCode::kSub);
    }
    --nesting_;
  }

  void product() {
    factor();
    while (true) {
      const ExtentCode code = take("*")    ? ExtentCode::kMul
                              : take("//") ? ExtentCode::kFloorDiv
                              : take("%")  ? ExtentCode::kFloorMod
                                           : ExtentCode::kNeg;
      if (code == ExtentCode::kNeg) return;
      factor();
      emit(code);
    }
  }

  void factor() {
    int negations = 0;
    while (peek() == '-' && (at_ + 1 == text_.size() || !is_digit(text_[at_ + 1]))) {
      ++at_;
      ++negations;
      if (ops_.size() + static_cast<size_t>(negations) > Extent::kMaxOps) fail("too many signs");
    }
    primary();
    for (; negations > 0; --negations) emit(ExtentCode::kNeg);
  }

  void primary() {
    const char c = peek();
    if (c == '-' || is_digit(c)) {
      number();
    } else if (c == '\'') {
      quoted();
    } else if (starts_name(c)) {
      const size_t start = at_;
      while (at_ < text_.size() && continues_name(text_[at_])) ++at_;
      const std::string_view name = text_.substr(start, at_ - start);
      if (take("(")) {
        call(name);
      } else {
        symbol(std::string(name));
      }
    } else {
      if (!take("(")) fail("a number, a symbol or \"(\" is missing");
      sum();
      expect(")");
    }
  }

  void number() {
    int64_t value = 0;
    const char* const first = text_.data() + at_;
    const auto [end, status] = std::from_chars(first, text_.data() + text_.size(), value);
    if (status != std::errc()) fail("a number beyond 64 bits");
    at_ += static_cast<size_t>(end - first);
    emit(ExtentCode::kConstant, value);
  }

  void factor_number() {
    skip_spaces();
    float value = 0;
    const char* const first = text_.data() + at_;
    const auto [end, status] = std::from_chars(first, text_.data() + text_.size(), value);
    const int64_t bits = factor_bits(value);
    if (status != std::errc() || !factor_of_bits(bits)) fail("no positive float32 number");
    at_ += static_cast<size_t>(end - first);
    expect("f");
    emit(ExtentCode::kConstant, bits);
  }

  void quoted() {
    std::string name;
    for (++at_; at_ < text_.size() && text_[at_] != '\''; ++at_) {
      if (text_[at_] == '\\' && ++at_ == text_.size()) break;
      name += text_[at_];
    }
    if (at_ >= text_.size()) fail("a quote that does not end");
    ++at_;
    if (name.empty()) fail("a symbol without a name");
    symbol(std::move(name));
  }

  void symbol(std::string name) {
    const auto found = std::find(symbols_.begin(), symbols_.end(), name);
    emit(ExtentCode::kSymbol, found - symbols_.begin());
    if (found == symbols_.end()) symbols_.push_back(std::move(name));
  }

  void call(std::string_view name) {
    if (name == "min" || name == "max") {
      sum();
      while (take(",")) {
        sum();
        emit(name == "min" ? ExtentCode::kMin : ExtentCode::kMax);
      }
      return expect(")");
    }
    const std::optional<size_t> index = find_extent_function(name);
    if (!index) fail("there is no function \"" + std::string(name) + "\"");
    const ExtentFunction& function = extent_functions()[*index];
    for (size_t i = 0; i < function.arity; ++i) {
      if (i > 0) expect(",");
      if (function.follows[i] == 'f') {
        factor_number();
      } else {
        sum();
      }
    }
    expect(")");
    emit(ExtentCode::kCall, static_cast<int64_t>(*index));
  }

  std::string_view text_;
  size_t at_ = 0;
  size_t nesting_ = 0;
  std::vector<Extent::Op> ops_;
  std::vector<std::string> symbols_;
};

/// The texts of the values that a program would have on its stack.
class ExtentPrinter {
public:
  std::string print(const Extent& extent) {
    for (const Extent::Op& op : extent.ops()) apply(op, extent.symbols());
    return std::move(stack_.back().text);
  }

private:
  struct Piece {
    std::string text;
    ExtentCode code;    ///< what made it: a negative constant counts as kNeg
    int64_t value = 0;  ///< of a constant
  };

  Piece pop() {
    Piece piece = std::move(stack_.back());
    stack_.pop_back();
    return piece;
  }
  static std::string within(Piece piece, int least) {
    return strength(piece.code) < least ? "(" + piece.text + ")" : std::move(piece.text);
  }

  void apply(const Extent::Op& op, const std::vector<std::string>& symbols) {
    switch (op.code) {
      case ExtentCode::kConstant:
        stack_.push_back({std::to_string(op.value), op.value < 0 ? ExtentCode::kNeg : op.code, op.value});
        return;
      case ExtentCode::kSymbol:
        stack_.push_back({quoted_symbol(symbols[static_cast<size_t>(op.value)]), op.code});
        return;
      case ExtentCode::kNeg: {
        // A constant keeps its parentheses: -(5) is an operation, -5 a number.
        Piece piece = pop();
        const bool number = piece.code == ExtentCode::kConstant;
        stack_.push_back({"-" + (number ? "(" + piece.text + ")" : within(std::move(piece), 3)), op.code});
        return;
      }
      case ExtentCode::kCall:
        return call(extent_functions()[static_cast<size_t>(op.value)]);
      case ExtentCode::kMin:
      case ExtentCode::kMax: {
        const Piece right = pop(), left = pop();
        const std::string name = op.code == ExtentCode::kMin ? "min(" : "max(";
        const std::string before =
            left.code == op.code ? left.text.substr(0, left.text.size() - 1) : name + left.text;
        stack_.push_back({before + ", " + right.text + ")", op.code});
        return;
      }
      default:
        break;
    }
    Piece right = pop(), left = pop();
    const int own = strength(op.code);
    const char* sign = op.code == ExtentCode::kAdd        ? " + "
                       : op.code == ExtentCode::kSub      ? " - "
                       : op.code == ExtentCode::kMul      ? "*"
                       : op.code == ExtentCode::kFloorDiv ? "//"
                                                          : " % ";
    stack_.push_back({within(std::move(left), own) + sign + within(std::move(right), own + 1), op.code});
  }

  void call(const ExtentFunction& function) {
    std::string arguments;
    for (size_t i = function.arity; i-- > 0;) {
      Piece piece = pop();
      if (function.follows[i] == 'f') {
        char buffer[64];
        const float factor = factor_of_bits(piece.value).value_or(0);
        piece.text = std::string(buffer, std::to_chars(buffer, buffer + sizeof buffer, factor).ptr) + "f";
      }
      arguments = piece.text + (arguments.empty() ? "" : ", " + arguments);
    }
    stack_.push_back({std::string(function.name) + "(" + arguments + ")", ExtentCode::kCall});
  }

  std::vector<Piece> stack_;
};

}  // namespace

Extent Extent::parse(std::string_view text) {
  ExtentParser parser(text);
  Extent result = parser.extent();
  if (!parser.at_end()) parser.fail("nothing more is expected");
  return result;
}

Extent Extent::parse_prefix(std::string_view& text) {
  ExtentParser parser(text.substr(0, kMaxTextBytes));
  Extent result = parser.extent();
  text.remove_prefix(parser.place());
  return result;
}

std::string Extent::to_string() const { return ExtentPrinter().print(*this); }

std::string quoted_symbol(std::string_view name) {
  if (!name.empty() && starts_name(name[0]) && std::all_of(name.begin(), name.end(), &continues_name)) {
    return std::string(name);
  }
  std::string result = "'";
  for (const char c : name) {
    if (c == '\'' || c == '\\') result += '\\';
    result += c;
  }
  return result + "'";
}

}  // namespace tensormill
