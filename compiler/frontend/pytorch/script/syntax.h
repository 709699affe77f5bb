/// What stands in the code of a TorchScript file, as plain structs. The language is a small part of Python,
/// as TorchScript prints it: one assignment a line, calls by their full names, if, while and for.
/// Thread-safety: values.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tensormill::frontend::pytorch::script {

struct Expr;
using ExprPtr = std::unique_ptr<const Expr>;

struct Expr {
  enum class Kind : uint8_t {
    kNone,
    kTrue,
    kFalse,
    kInt,
    kReal,
    kText,
    kName,
    kAttribute,  ///< items[0].text
    kSubscript,  ///< items[0][items[1]]; of a type: of all behind the first
    kCall,       ///< items[0](items[1], ..., keywords[0]=...)
    kNegative,   ///< -items[0]
    kList,
    kTuple,
    kDict  ///< key, value, key, value ...
  };
  Kind kind = Kind::kNone;
  int line = 0;
  int depth = 1;
  int64_t integer = 0;
  double real = 0;
  std::string text;
  std::vector<ExprPtr> items;
  std::vector<std::pair<std::string, ExprPtr>> keywords;
};

struct Statement {
  enum class Kind : uint8_t {
    kAssign,     ///< targets = value; of several targets the value's elements
    kAttribute,  ///< object.text = value
    kEvaluate,
    kReturn,  ///< without a value: of None
    kPass,
    kIf,     ///< value, body, otherwise
    kWhile,  ///< value, body
    kFor,    ///< targets[0] in value, body
    kOther   ///< `text`: what it begins with; never run
  };
  Kind kind = Kind::kPass;
  int line = 0;
  std::string text;
  std::vector<std::string> targets;
  bool unpacks = false;  ///< "a, b, = value"
  ExprPtr object, value;
  std::vector<Statement> body, otherwise;
};

struct Parameter {
  std::string name;
  ExprPtr type;       ///< null: a tensor
  ExprPtr otherwise;  ///< null: it has to be given
};
struct Function {
  std::string name;
  std::string file;  ///< "code/__torch__/net.py"
  std::vector<Parameter> parameters;
  ExprPtr result;   ///< its type; null: not said
  size_t size = 0;  ///< expressions in it
  std::vector<Statement> body;
};
struct Class {
  std::string name;  ///< "__torch__.net.Block"
  std::string base;  ///< "Module"
  std::string file;
  std::vector<std::string> fields;           ///< attributes in their order
  std::map<std::string, ExprPtr> constants;  ///< attributes that have their value in the code
  std::map<std::string, Function> methods;
};

/// All code of a file, by names with their module: "__torch__.net.Block", "__torch__.net.helper".
struct Code {
  std::map<std::string, Class> classes;
  std::map<std::string, Function> functions;
};

/// "Dict[str, Tensor]"
std::string type_text(const Expr& type);
/// "a.b.c" of names and attributes; "" of anything else.
std::string dotted_name(const Expr& expr);

}  // namespace tensormill::frontend::pytorch::script
