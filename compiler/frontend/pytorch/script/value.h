/// What variables of TorchScript's code hold while its forward() is followed. Thread-safety: values that
/// share lists and dictionaries, as in Python.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "compiler/frontend/pytorch/extent_real.h"
#include "compiler/frontend/pytorch/script/syntax.h"
#include "compiler/frontend/pytorch/unpickle.h"
#include "compiler/ir/sym_int.h"

namespace tensormill::frontend::pytorch::script {

struct Value;

/// A list or a tuple.
struct Items {
  bool is_tuple = false;
  const Class* type = nullptr;  ///< of a tuple whose elements have names
  std::vector<Value> values;
};
/// In the order in which entries were made.
struct Dict {
  std::vector<std::pair<Value, Value>> entries;
};
/// A tensor of the graph that is made, by its name there.
struct TensorRef {
  std::string name;
};
/// A module, and where it stands: "layer1.0".
struct ObjectRef {
  const PickleValue* object = nullptr;
  std::string path;
};
struct FunctionRef {
  const Function* function = nullptr;
};
/// What an operator would give that is not implemented, which is noted.
struct Lost {};

struct Value {
  std::variant<std::monostate, bool, ir::SymInt, double, std::string, TensorRef, std::shared_ptr<Items>,
               std::shared_ptr<Dict>, ObjectRef, FunctionRef, Lost, ExtentReal>
      held;

  template <typename T>
  const T* as() const {
    return std::get_if<T>(&held);
  }
  bool is_none() const { return std::holds_alternative<std::monostate>(held); }
  bool is_lost() const { return std::holds_alternative<Lost>(held); }
  bool is_tensor() const { return std::holds_alternative<TensorRef>(held); }
  /// Of a list or a tuple; null for anything else.
  Items* items() const {
    const auto* shared = std::get_if<std::shared_ptr<Items>>(&held);
    return shared == nullptr ? nullptr : shared->get();
  }
  Dict* dict() const {
    const auto* shared = std::get_if<std::shared_ptr<Dict>>(&held);
    return shared == nullptr ? nullptr : shared->get();
  }
  /// A real number, of which free extents may decide.
  bool is_real() const { return as<double>() != nullptr || as<ExtentReal>() != nullptr; }
  bool is_number() const { return as<bool>() != nullptr || as<ir::SymInt>() != nullptr || is_real(); }
};

Value list_of(std::vector<Value> values);
Value tuple_of(std::vector<Value> values);
/// "int", "Tensor", "List": for errors.
std::string kind_of(const Value& value);
/// A number as a real one, the same in all runs from now on. Throws Error(kInvalidModel) for anything else.
double real_of(const Value& value);
/// An integer or a truth value as an integer. Throws Error(kInvalidModel) for anything else.
ir::SymInt whole_of(const Value& value);
/// Whether two values that are no tensors are the same; nothing where that is not known.
bool same_values(const Value& a, const Value& b);
/// As Python writes it, for texts of errors.
std::string text_of(const Value& value);

/// Where something stands in the code.
struct Place {
  const std::string* file = nullptr;
  int line = 0;
};
std::string to_string(const Place& place);

}  // namespace tensormill::frontend::pytorch::script
