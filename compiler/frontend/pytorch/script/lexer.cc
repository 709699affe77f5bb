#include "compiler/frontend/pytorch/script/lexer.h"

#include <charconv>

#include "runtime/base/error.h"

namespace tensormill::frontend::pytorch::script {

namespace {

using TokenKind = Token::Kind;

constexpr size_t kMaxTokens = 4'000'000;
constexpr size_t kMaxBlocks = 128;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool begins_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

class Lexer {
public:
  Lexer(std::string_view code, const std::string& file) : code_(code), file_(file) {}

  std::vector<Token> run() {
    while (at_ < code_.size()) read_line();
    for (; blocks_.size() > 1; blocks_.pop_back()) add(TokenKind::kDedent);
    add(TokenKind::kEnd);
    return std::move(tokens_);
  }

private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::kInvalidModel, file_ + ":" + std::to_string(line_) + ": " + what);
  }

  Token& add(TokenKind kind, std::string text = {}) {
    if (tokens_.size() >= kMaxTokens) fail("more than " + std::to_string(kMaxTokens) + " words");
    tokens_.push_back({kind, line_, std::move(text), 0, 0});
    return tokens_.back();
  }

  char here() const { return at_ < code_.size() ? code_[at_] : '\0'; }

  /// One line, or several within brackets.
  void read_line() {
    size_t width = 0;
    while (here() == ' ') {
      ++at_;
      ++width;
    }
    const bool is_blank = at_ >= code_.size() || here() == '\n' || here() == '#' || here() == '\r';
    if (!is_blank) set_block(width);
    const size_t before = tokens_.size();
    while (at_ < code_.size() && (here() != '\n' || open_ > 0)) read_token();
    if (open_ > 0) fail("a bracket has no end");
    if (tokens_.size() > before && !is_blank) add(TokenKind::kLine);
    if (at_ < code_.size()) ++at_;
    ++line_;
  }

  void set_block(size_t width) {
    if (width > blocks_.back()) {
      if (blocks_.size() >= kMaxBlocks) fail("blocks are nested too deeply");
      blocks_.push_back(width);
      add(TokenKind::kIndent);
    }
    for (; width < blocks_.back(); blocks_.pop_back()) add(TokenKind::kDedent);
    if (width != blocks_.back()) fail("a line is indented like no block around it");
  }

  void read_token() {
    const char c = here();
    if (c == '\n') ++line_;
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      ++at_;
      return;
    }
    if (c == '#') {
      while (at_ < code_.size() && here() != '\n') ++at_;
      return;
    }
    if (begins_name(c)) return read_name();
    if (is_digit(c) || (c == '.' && at_ + 1 < code_.size() && is_digit(code_[at_ + 1]))) return read_number();
    if (c == '"' || c == '\'') return read_text(c);
    if (code_.substr(at_, 2) == "->") {
      at_ += 2;
      add(TokenKind::kMark, "->");
      return;
    }
    if (std::string_view("()[]{},.:=-+*/@<>!&|~%").find(c) == std::string_view::npos)
      fail("a character that no code has: " + std::to_string(static_cast<unsigned char>(c)));
    if (c == '(' || c == '[' || c == '{') ++open_;
    if ((c == ')' || c == ']' || c == '}') && --open_ < 0) fail("a bracket has no begin");
    ++at_;
    add(TokenKind::kMark, std::string(1, c));
  }

  void read_name() {
    const size_t begin = at_;
    while (at_ < code_.size() && (begins_name(here()) || is_digit(here()))) ++at_;
    add(TokenKind::kName, std::string(code_.substr(begin, at_ - begin)));
  }

  void read_number() {
    const size_t begin = at_;
    bool is_real = false;
    while (at_ < code_.size()) {
      const char c = here();
      const bool is_sign = (c == '-' || c == '+') && (code_[at_ - 1] == 'e' || code_[at_ - 1] == 'E');
      if (!is_digit(c) && c != '.' && c != 'e' && c != 'E' && !is_sign) break;
      is_real = is_real || !is_digit(c);
      ++at_;
    }
    if (here() == 'j') fail("complex numbers are not implemented");
    const std::string_view text = code_.substr(begin, at_ - begin);
    const char *first = text.data(), *last = first + text.size();
    int64_t integer = 0;
    double real = 0;
    const auto end =
        is_real ? std::from_chars(first, last, real).ptr : std::from_chars(first, last, integer).ptr;
    // The one number whose negative alone fits.
    if (!is_real && text == "9223372036854775808") integer = INT64_MIN;
    if (end != last) fail("\"" + std::string(text.substr(0, 100)) + "\" is no number");
    Token& token = add(is_real ? TokenKind::kReal : TokenKind::kInt);
    token.integer = integer;
    token.real = is_real ? real : static_cast<double>(integer);
  }

  void read_text(char quote) {
    std::string text;
    for (++at_; here() != quote; ++at_) {
      if (at_ >= code_.size() || here() == '\n') fail("a text has no end");
      text += here() == '\\' ? escaped() : here();
    }
    ++at_;
    add(TokenKind::kText, std::move(text));
  }

  /// What a backslash and what is behind it stand for; stays on the last of it.
  char escaped() {
    if (++at_ >= code_.size()) fail("a text has no end");
    const char c = here();
    static constexpr std::string_view kNames = "abfnrtv\\'\"", kBytes = "\a\b\f\n\r\t\v\\'\"";
    if (const size_t known = kNames.find(c); known != std::string_view::npos) return kBytes[known];
    if (c < '0' || c > '7') fail("an escape that no text has");
    int value = c - '0';
    for (int i = 0; i < 2 && at_ + 1 < code_.size() && code_[at_ + 1] >= '0' && code_[at_ + 1] <= '7'; ++i)
      value = value * 8 + (code_[++at_] - '0');
    return static_cast<char>(value);
  }

  std::string_view code_;
  const std::string& file_;
  size_t at_ = 0;
  int line_ = 1;
  int open_ = 0;
  std::vector<size_t> blocks_ = {0};
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokens_of(std::string_view code, const std::string& file) {
  return Lexer(code, file).run();
}

}  // namespace tensormill::frontend::pytorch::script
