#include "compiler/frontend/pytorch/script/parser.h"

#include <algorithm>

#include "compiler/frontend/pytorch/script/lexer.h"
#include "runtime/base/error.h"

namespace tensormill::frontend::pytorch::script {

namespace {

using Kind = Expr::Kind;

constexpr int kMaxDepth = 200;
constexpr size_t kMaxExprs = 1'000'000;

class Parser {
public:
  Parser(std::string_view code, std::string file, std::string module, Code& into)
      : file_(std::move(file)), module_(std::move(module)), into_(into), tokens_(tokens_of(code, file_)) {}

  void run() {
    while (here().kind != Token::Kind::kEnd) {
      if (takes_name("class")) {
        read_class();
      } else if (takes_name("def")) {
        Function function = read_function();
        const std::string name = module_ + "." + function.name;
        if (!into_.functions.emplace(name, std::move(function)).second) fail(name + " stands twice");
      } else {
        // "op_version_set = 1", "import ..." of older files.
        skip_line();
      }
    }
  }

private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::kInvalidModel, file_ + ":" + std::to_string(here().line) + ": " + what);
  }

  const Token& here() const { return tokens_[at_]; }
  bool is_mark(std::string_view text) const {
    return here().kind == Token::Kind::kMark && here().text == text;
  }
  bool is_name(std::string_view text) const {
    return here().kind == Token::Kind::kName && here().text == text;
  }
  bool takes(Token::Kind kind) {
    if (here().kind != kind) return false;
    if (kind != Token::Kind::kEnd) ++at_;
    return true;
  }
  bool takes_mark(std::string_view text) {
    if (!is_mark(text)) return false;
    ++at_;
    return true;
  }
  bool takes_name(std::string_view text) {
    if (!is_name(text)) return false;
    ++at_;
    return true;
  }
  void expect_mark(std::string_view text) {
    if (!takes_mark(text)) fail("expected \"" + std::string(text) + "\"" + but());
  }
  void expect(Token::Kind kind, const std::string& what) {
    if (!takes(kind)) fail("expected " + what + but());
  }
  std::string but() const {
    return here().text.empty() ? std::string() : ", not \"" + here().text.substr(0, 100) + "\"";
  }
  std::string name() {
    if (here().kind != Token::Kind::kName) fail("expected a name" + but());
    return tokens_[at_++].text;
  }
  void skip_line() {
    while (here().kind != Token::Kind::kLine && here().kind != Token::Kind::kEnd) ++at_;
    takes(Token::Kind::kLine);
    // A block behind it belongs to it.
    if (!takes(Token::Kind::kIndent)) return;
    for (int depth = 1; depth > 0; ++at_) {
      if (here().kind == Token::Kind::kEnd) return;
      if (here().kind == Token::Kind::kIndent) ++depth;
      if (here().kind == Token::Kind::kDedent) --depth;
    }
  }

  void begin_block() {
    expect_mark(":");
    expect(Token::Kind::kLine, "the end of the line");
    expect(Token::Kind::kIndent, "a block");
  }

  void read_class() {
    Class made;
    made.file = file_;
    made.name = module_ + "." + name();
    expect_mark("(");
    made.base = dotted_name(*expression());
    expect_mark(")");
    begin_block();
    while (!takes(Token::Kind::kDedent)) {
      if (here().kind == Token::Kind::kEnd) fail("a class has no end");
      read_member(made);
    }
    const std::string own = made.name;
    if (!into_.classes.emplace(own, std::move(made)).second) fail(own + " stands twice");
  }

  void read_member(Class& made) {
    if (takes_name("def")) {
      Function method = read_function();
      const std::string own = method.name;
      if (!made.methods.emplace(own, std::move(method)).second) fail("method " + own + " stands twice");
      return;
    }
    // "weight : Tensor", "size : Final[int] = 3"; what is called otherwise stands in __annotations__.
    const bool is_field = here().kind == Token::Kind::kName && tokens_[at_ + 1].text == ":";
    if (!is_field) return skip_line();
    made.fields.push_back(name());
    expect_mark(":");
    static_cast<void>(expression());
    if (takes_mark("=")) made.constants[made.fields.back()] = expression();
    expect(Token::Kind::kLine, "the end of the line");
  }

  Function read_function() {
    Function made;
    made.file = file_;
    made.name = name();
    const size_t before = made_;
    expect_mark("(");
    while (!takes_mark(")")) {
      Parameter parameter;
      parameter.name = name();
      if (takes_mark(":")) parameter.type = expression();
      if (takes_mark("=")) parameter.otherwise = expression();
      made.parameters.push_back(std::move(parameter));
      if (!is_mark(")")) expect_mark(",");
    }
    if (takes_mark("->")) made.result = expression();
    made.body = block();
    made.size = made_ - before;
    return made;
  }

  std::vector<Statement> block() {
    if (++depth_ > kMaxDepth) fail("blocks are nested too deeply");
    begin_block();
    std::vector<Statement> body;
    while (!takes(Token::Kind::kDedent)) {
      if (here().kind == Token::Kind::kEnd) fail("a block has no end");
      body.push_back(statement());
    }
    --depth_;
    return body;
  }

  Statement statement() {
    Statement made;
    made.line = here().line;
    if (takes_name("pass")) {
      expect(Token::Kind::kLine, "the end of the line");
      return made;
    }
    if (takes_name("return")) {
      made.kind = Statement::Kind::kReturn;
      if (here().kind != Token::Kind::kLine) made.value = expression_list();
      expect(Token::Kind::kLine, "the end of the line");
      return made;
    }
    if (is_name("if") || is_name("elif")) return if_statement();
    if (takes_name("while")) {
      made.kind = Statement::Kind::kWhile;
      made.value = expression();
      made.body = block();
      return made;
    }
    if (takes_name("for")) return for_statement();
    for (const std::string_view word : {"with", "try", "raise", "del", "assert", "import", "from", "class",
                                        "def", "global", "break", "continue", "else"}) {
      if (!is_name(word)) continue;
      made.kind = Statement::Kind::kOther;
      made.text = word;
      skip_line();
      return made;
    }
    return assignment();
  }

  Statement if_statement() {
    Statement made;
    made.kind = Statement::Kind::kIf;
    made.line = here().line;
    ++at_;
    made.value = expression();
    made.body = block();
    if (is_name("elif")) {
      if (++depth_ > kMaxDepth) fail("blocks are nested too deeply");
      made.otherwise.push_back(if_statement());
      --depth_;
    } else if (takes_name("else")) {
      made.otherwise = block();
    }
    return made;
  }

  Statement for_statement() {
    Statement made;
    made.kind = Statement::Kind::kFor;
    made.line = here().line;
    made.targets.push_back(name());
    if (!takes_name("in")) fail("expected \"in\"" + but());
    made.value = expression();
    made.body = block();
    return made;
  }

  /// "x = e", "x : T = e", "a, b, = e", "self.x = e", "e".
  Statement assignment() {
    Statement made;
    made.line = here().line;
    ExprPtr first = expression();
    if (is_mark(",")) {
      made.unpacks = true;
      made.targets.push_back(target(*first));
      while (takes_mark(","))
        if (!is_mark("=")) made.targets.push_back(target(*expression()));
    }
    if (takes_mark(":")) static_cast<void>(expression());
    if (!takes_mark("=")) {
      if (made.unpacks) fail("expected \"=\"" + but());
      made.kind = Statement::Kind::kEvaluate;
      made.value = std::move(first);
    } else if (!made.unpacks && first->kind == Kind::kAttribute) {
      made.kind = Statement::Kind::kAttribute;
      made.text = first->text;
      made.object = std::move(first);
      made.value = expression_list();
    } else {
      made.kind = Statement::Kind::kAssign;
      if (!made.unpacks) made.targets.push_back(target(*first));
      made.value = expression_list();
    }
    expect(Token::Kind::kLine, "the end of the line");
    return made;
  }

  std::string target(const Expr& expr) const {
    if (expr.kind != Kind::kName) fail("something is assigned to what is no name");
    return expr.text;
  }

  std::unique_ptr<Expr> make(Kind kind) {
    if (++made_ > kMaxExprs) fail("more than " + std::to_string(kMaxExprs) + " expressions");
    auto expr = std::make_unique<Expr>();
    expr->kind = kind;
    expr->line = here().line;
    return expr;
  }

  /// Brackets and dots behind each other nest as brackets within each other do.
  ExprPtr whole(std::unique_ptr<Expr> expr) const {
    for (const ExprPtr& item : expr->items) expr->depth = std::max(expr->depth, item->depth + 1);
    for (const auto& [name, item] : expr->keywords) expr->depth = std::max(expr->depth, item->depth + 1);
    if (expr->depth > kMaxDepth) fail("expressions are nested too deeply");
    return expr;
  }

  /// A tuple where there is a comma.
  ExprPtr expression_list() {
    ExprPtr first = expression();
    if (!is_mark(",")) return first;
    std::unique_ptr<Expr> tuple = make(Kind::kTuple);
    tuple->items.push_back(std::move(first));
    while (takes_mark(","))
      if (here().kind != Token::Kind::kLine) tuple->items.push_back(expression());
    return whole(std::move(tuple));
  }

  ExprPtr expression() {
    if (++depth_ > kMaxDepth) fail("expressions are nested too deeply");
    ExprPtr made;
    if (takes_mark("-")) {
      std::unique_ptr<Expr> negative = make(Kind::kNegative);
      negative->items.push_back(expression());
      made = whole(std::move(negative));
    } else {
      made = primary();
    }
    --depth_;
    return made;
  }

  ExprPtr primary() {
    ExprPtr made = atom();
    for (;;) {
      if (takes_mark(".")) {
        std::unique_ptr<Expr> attribute = make(Kind::kAttribute);
        attribute->text = name();
        attribute->items.push_back(std::move(made));
        made = whole(std::move(attribute));
      } else if (takes_mark("[")) {
        std::unique_ptr<Expr> subscript = make(Kind::kSubscript);
        subscript->items.push_back(std::move(made));
        read_items("]", *subscript);
        made = whole(std::move(subscript));
      } else if (takes_mark("(")) {
        std::unique_ptr<Expr> call = make(Kind::kCall);
        call->items.push_back(std::move(made));
        read_arguments(*call);
        made = whole(std::move(call));
      } else {
        return made;
      }
    }
  }

  void read_items(std::string_view end, Expr& into) {
    while (!takes_mark(end)) {
      into.items.push_back(expression());
      if (!is_mark(end)) expect_mark(",");
    }
  }

  void read_arguments(Expr& call) {
    while (!takes_mark(")")) {
      if (here().kind == Token::Kind::kName && tokens_[at_ + 1].text == "=" &&
          tokens_[at_ + 1].kind == Token::Kind::kMark) {
        std::string keyword = name();
        ++at_;
        call.keywords.emplace_back(std::move(keyword), expression());
      } else {
        call.items.push_back(expression());
      }
      if (!is_mark(")")) expect_mark(",");
    }
  }

  ExprPtr atom() {
    const Token& token = here();
    std::unique_ptr<Expr> made = make(Kind::kNone);
    switch (token.kind) {
      case Token::Kind::kName:
        made->kind = token.text == "None"    ? Kind::kNone
                     : token.text == "True"  ? Kind::kTrue
                     : token.text == "False" ? Kind::kFalse
                                             : Kind::kName;
        made->text = token.text;
        ++at_;
        return made;
      case Token::Kind::kInt:
      case Token::Kind::kReal:
        made->kind = token.kind == Token::Kind::kInt ? Kind::kInt : Kind::kReal;
        made->integer = token.integer;
        made->real = token.real;
        ++at_;
        return made;
      case Token::Kind::kText:
        made->kind = Kind::kText;
        made->text = token.text;
        ++at_;
        return made;
      default:
        break;
    }
    if (takes_mark("(")) return parenthesized();
    if (takes_mark("[")) {
      made->kind = Kind::kList;
      read_items("]", *made);
      return whole(std::move(made));
    }
    if (!takes_mark("{")) fail("expected an expression" + but());
    made->kind = Kind::kDict;
    while (!takes_mark("}")) {
      made->items.push_back(expression());
      expect_mark(":");
      made->items.push_back(expression());
      if (!is_mark("}")) expect_mark(",");
    }
    return whole(std::move(made));
  }

  /// "(x)" is x, "(x,)" and "()" are tuples.
  ExprPtr parenthesized() {
    std::unique_ptr<Expr> tuple = make(Kind::kTuple);
    if (takes_mark(")")) return tuple;
    ExprPtr first = expression();
    if (takes_mark(")")) return first;
    tuple->items.push_back(std::move(first));
    expect_mark(",");
    read_items(")", *tuple);
    return whole(std::move(tuple));
  }

  const std::string file_, module_;
  Code& into_;
  const std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
  size_t made_ = 0;
};

}  // namespace

void parse_code(std::string_view code, const std::string& file, const std::string& module, Code& into) {
  Parser(code, file, module, into).run();
}

std::string dotted_name(const Expr& expr) {
  std::string text;
  const Expr* at = &expr;
  for (; at->kind == Kind::kAttribute; at = at->items[0].get()) text = "." + at->text + text;
  return at->kind == Kind::kName ? at->text + text : std::string();
}

std::string type_text(const Expr& type) {
  if (type.kind == Kind::kNone) return "None";
  if (type.kind == Kind::kSubscript) {
    std::string text = type_text(*type.items[0]) + "[";
    for (size_t i = 1; i < type.items.size(); ++i) text += (i > 1 ? ", " : "") + type_text(*type.items[i]);
    return text + "]";
  }
  return dotted_name(type);
}

}  // namespace tensormill::frontend::pytorch::script
