/// What the iterations of a loop hand on: tensors of fixed shapes, tensors and sequences that grow, and what
/// stays as it is. Thread-safety: as the builder.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/frontend/onnx/converters/control/body_symbols.h"
#include "compiler/frontend/onnx/graph/builder.h"

namespace tensormill::frontend::onnx {

class CarriedValues {
public:
  /// `most_trips`: a bound of the iterations' number, if there is one. `binds`: iterations bind the extents
  /// of what they are handed where nothing else says how they change: it is in a growing buffer.
  CarriedValues(StructureContext& context, const std::vector<Binding>& initial,
                std::optional<ir::SymInt> most_trips, bool binds);

  /// What the loop starts with: the values, then the counts of what may grow and whether there are those that
  /// are optional.
  std::vector<ir::ValueId> initial();
  /// How much longer what grows may get in one iteration, so that there is capacity for it behind what the
  /// iteration is handed: which of loop_begin's outputs, which axis, how much, one behind the other.
  std::vector<int64_t> spare() const;
  /// What the body sees of `carried`, which stand for initial(); `trip`: the iteration's number.
  std::vector<Binding> arguments(const std::vector<ir::ValueId>& carried, ir::ValueId trip);
  /// What initial() is to be in the next iteration, of the body's results for the values, which may be made
  /// of `body`'s symbols; `names` are theirs.
  /// Nothing where that needs another form: from then on initial() gives that one. Throws UnsupportedForm for
  /// what can be handed on in none.
  std::optional<std::vector<ir::ValueId>> next(const std::vector<Binding>& results,
                                               const std::vector<std::string>& names,
                                               const BodySymbols& body);
  /// What is behind the loop, of the final values of initial(); `is_exact`: there are most_trips iterations,
  /// `trips` (i64 [1]) in a run.
  std::vector<Binding> results(const std::vector<ir::ValueId>& final, ir::ValueId trips, bool is_exact);

private:
  /// An axis of which a run works out the extent.
  struct Axis {
    size_t axis = 0;
    int64_t growth = 0;  ///< at most, in an iteration
    size_t count = 0;    ///< its place among the counts
    /// No count says how much of it is there: the stack's table does, or the zeros behind a string.
    bool is_capacity = false;
    int64_t raised =
        0;  ///< how much more capacity there is than the first value needs, while it does not grow
  };
  /// kTable: of a stack's or ragged sequence's extents, behind all others.
  enum class Kind : uint8_t { kTensor, kStack, kRagged, kMaybe, kConstant, kTable };
  struct Form {
    Kind kind = Kind::kTensor;
    Binding initial;
    ir::ValueType type;  ///< of the first value, where it is not kConstant
    std::vector<Axis> axes;
    std::vector<size_t> uneven = {};  ///< of the elements of a sequence
    size_t owner = 0;                 ///< kTable: whose it is
    /// Where iterations bind its extents: the growing buffer that it is in, the axes of these, what the loop
    /// begins with, and what an iteration is handed. Then its extents are handed on in its place.
    std::optional<int64_t> buffer = {};
    std::map<size_t, ir::SymInt> bound_axes = {};  ///< with the extents that an iteration is handed
    ir::ValueId first = ir::kAbsent, taken = ir::kAbsent;
    bool is_capacity(size_t axis) const;
    Axis& along(size_t axis);
  };
  struct Count {
    ir::ValueId initial = ir::kAbsent;
    int64_t growth = 0;
    ir::ValueId carried = ir::kAbsent, next = ir::kAbsent;
  };

  /// An extent that iterations bind, and what it is in the first or the next one.
  struct BoundExtent {
    ir::SymInt extent, own;
  };

  /// What an iteration hands on: a value of each form, whether those that are optional are there, and the
  /// tables of those that are sequences, by their place among the results.
  struct NextValues {
    std::vector<ir::ValueId> values, flags, tables;
  };

  bool take_result(size_t index, const Binding& result, const std::string& name, const BodySymbols& body,
                   NextValues& next);
  bool take_constant(Form& form, const Binding& result, const std::string& name, const BodySymbols& body);
  bool take_tables(const std::vector<std::string>& names, NextValues& next);
  bool take_counts(const Form& form, ir::ValueId value);
  bool take_extents(const Form& form, ir::ValueId value, std::vector<BoundExtent>& bound);
  bool counts_stay();
  bool add_optional(Form& form, const Binding& result);
  /// Of all that initial() gives, as it is later; `is_whole`: all of an axis is meant.
  std::vector<Binding> bindings_of(const std::vector<ir::ValueId>& all, ir::ValueId trip,
                                   const std::function<bool(const Count&)>& is_whole);
  void add_table(size_t owner);
  Binding stack_as(Form& form, const Binding& result, const std::string& name);
  bool has_table(const Form& form) const;
  void add_sequence(Form& form, const Binding& result, const std::string& name, const BodySymbols& body);
  bool add_ragged(Form& form, const Binding& result, const std::string& name, const BodySymbols& body);
  bool widen(Form& form, ir::ValueId result, const std::string& name);
  void bind_axis(Form& form, size_t axis);
  void take_bound(Form& form, ir::ValueId extents, ir::ValueId trip, std::vector<BoundExtent>& bound);
  bool add_capacity(Form& form, size_t axis, const ir::SymInt& more, bool is_data_dependent,
                    const std::string& name);
  void check_bound(int64_t growth, const std::string& name) const;
  void share_counts();
  size_t places() const;
  ir::ValueId largest(const Form& form, ir::ValueId x);
  ir::SymInt extent_of(const Form& form, size_t axis) const;
  bool is_steady(const Count& count) const;
  bool starts_with_some(const Count& count) const;
  [[noreturn]] void refuse(const std::string& name, const ir::ValueType& type, const Form& form) const;

  StructureContext& context_;
  NodeContext& node_;
  std::optional<ir::SymInt> most_trips_;
  const bool binds_;
  std::vector<Form> forms_;
  std::vector<Count> counts_;
  bool counts_are_apart_ = false, extents_are_apart_ = false, extents_may_be_none_ = false;
  bool counts_may_shrink_ = false;
};

}  // namespace tensormill::frontend::onnx
