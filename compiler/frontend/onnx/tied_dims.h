/// Finds which of its operands' free extents a node wants to be equal, or a number, several at once: matrices
/// of which rows and batches are named apart, a picture whose channels are those of the weights.
/// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "compiler/frontend/onnx/import.h"

namespace tensormill::frontend::onnx {

/// A free dim that follows from what a node asks for.
struct Tie {
  size_t dim = 0;
  std::optional<size_t> same = std::nullopt;  ///< the dim that it is equal to; nothing: it is `value`
  int64_t value = 0;                          ///< where the import ended
  /// Where the dim and the number lie in the stop's numbers; the number is not there if it is an attribute.
  size_t at = 0;
  std::optional<size_t> number = std::nullopt;
};

/// Where an import ended, and how to try others.
struct TiedNode {
  const std::function<ImportStop(const std::vector<int64_t>&)>& stop_at;
  const ImportStop& stop;
  const std::vector<int64_t>& base;    ///< where it ended there: an extent of each dim that no other one has
  const std::vector<bool>& is_known;   ///< dims that follow from others already
  const std::vector<int64_t>& anchor;  ///< an extent of each dim that is asked for, 0 where any will do
  const std::vector<std::vector<int64_t>>& taken;  ///< shapes that the model takes, which a tie may not break
  int64_t& tries_left;  ///< imports; those that are sure to be few are made without, too
};

/// Whether the import got farther; it did where it ended nowhere.
bool is_farther(const ImportStop& stop, const ImportStop& than);

/// The fewest equalities of dims alone with which the import gets farther; empty: there are none.
std::vector<Tie> find_equal_dims(const TiedNode& node);
/// The fewest with which dims may be numbers too, of other operands' axes or attributes; a number is no tie
/// if one beside it or a multiple of it would do.
std::vector<Tie> find_tied_dims(const TiedNode& node);

}  // namespace tensormill::frontend::onnx
