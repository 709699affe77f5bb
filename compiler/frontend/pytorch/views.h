/// Tensors of a program, of which several may be views of one storage: what is written through a view is a
/// new version of the storage, and every view of it is read from the newest. Thread-safety: as the graph.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/build/op_builder.h"
#include "compiler/frontend/pytorch/layout.h"
#include "compiler/frontend/pytorch/model.h"

namespace tensormill::frontend::pytorch {

/// One step from a tensor to a part or another form of it.
struct ViewStep {
  using V = ir::ValueId;
  std::function<V(build::OpBuilder&, V)> read;
  /// The tensor that the view was made of, with `part` in place of the view. Null: such views are not
  /// written.
  std::function<V(build::OpBuilder&, V whole, V part)> write;
  /// Where its elements lie, of where those of what it is made of do, and what is known of the symbols. Null:
  /// not known.
  std::function<std::optional<Layout>(const Layout&, const te::DimFacts&)> layout = {};
};

/// What views share.
struct Storage {
  ir::ValueId value = ir::kAbsent;
  size_t version = 0;
  const StoredTensor* stored = nullptr;  ///< a weight, which becomes a constant where it is first read
  std::string name;                      ///< of the weight or the user's input
  bool is_weight = false;
  std::optional<Layout> layout = {};  ///< where torch has its elements, where that is known; not of a weight
  bool is_stale = false;  ///< what it may share its elements with was written: nothing may read it
  /// Itself and all that may or may not share their elements with it, where there are any.
  std::shared_ptr<std::vector<std::weak_ptr<Storage>>> maybe_shared = nullptr;
};

struct View {
  std::shared_ptr<Storage> storage;
  std::vector<std::shared_ptr<const ViewStep>> steps = {};
  ir::ValueId value = ir::kAbsent;  ///< of `version`
  size_t version = 0;
  /// Its elements are complex: their parts stand along a last axis of 2, of which steps and layouts know
  /// nothing.
  bool is_complex = false;
};

/// Why a tensor of that name is not read whose storage is stale.
std::string why_stale(const std::string& name);
/// The view's value: where the storage has changed since, read from it again.
ir::ValueId read_view(build::OpBuilder& builder, View& view);
/// Puts `value` in place of what the view shows, and marks what may share it as stale. Throws UnsupportedForm
/// for views that are not written.
void write_view(build::OpBuilder& builder, View& view, ir::ValueId value);

/// The step to elements start, start + step ... of an axis.
std::shared_ptr<const ViewStep> slice_step(int64_t axis, const ir::SymInt& start, const ir::SymInt& extent,
                                           int64_t step);
/// To element `at` of an axis, which is no axis of the view.
std::shared_ptr<const ViewStep> select_step(int64_t axis, const ir::SymInt& at);
std::shared_ptr<const ViewStep> transpose_step(std::vector<int64_t> perm);
/// To another shape of as many elements.
std::shared_ptr<const ViewStep> reshape_step(const ir::SymShape& shape);
/// The step with which complex elements, of which it knows nothing, go the same way.
std::shared_ptr<const ViewStep> step_of_pairs(const std::shared_ptr<const ViewStep>& step);
/// To the numbers that are the parts of complex elements, and from pairs of numbers to those.
std::shared_ptr<const ViewStep> numbers_step();
std::shared_ptr<const ViewStep> pairs_step();
/// To the conjugates of complex elements.
std::shared_ptr<const ViewStep> conjugate_step();
/// To more of the same elements.
std::shared_ptr<const ViewStep> expand_step(const ir::SymShape& shape);

}  // namespace tensormill::frontend::pytorch
