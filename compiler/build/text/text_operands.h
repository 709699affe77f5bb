/// Nodes whose operands hold strings, by what their operators do with these: what moves elements moves the
/// numbers of strings, which are gathered from there; most other operators take no strings. Thread-safety: as
/// the graph.
#pragma once

#include <algorithm>
#include <functional>
#include <span>
#include <vector>

#include "compiler/build/text/text.h"

namespace tensormill::build {

enum class TextUse : uint8_t {
  kRefuses,
  kReads,        ///< knows strings, or passes on whatever it is given
  kMoves,        ///< elements to other places, whatever they are
  kReshapes,     ///< as many elements in another shape; those of operand 0
  kAsksOfShape,  ///< results that say nothing of elements
};

/// The converters of a format by what they do with strings; a converter in none of the lists refuses them.
template <typename Converter>
struct TextConverters {
  std::span<const Converter> reads, moves, reshapes, shapes;

  TextUse use_of(Converter convert) const {
    const auto is_in = [&](std::span<const Converter> all) {
      return std::find(all.begin(), all.end(), convert) != all.end();
    };
    if (is_in(reads)) return TextUse::kReads;
    if (is_in(moves)) return TextUse::kMoves;
    if (is_in(reshapes)) return TextUse::kReshapes;
    return is_in(shapes) ? TextUse::kAsksOfShape : TextUse::kRefuses;
  }
};

/// The first of the operands that holds strings; as many as there are where none does.
size_t first_text(const OpBuilder& builder, const std::vector<ir::ValueId>& operands);

/// The results of a node among whose operands, from `first` on, are strings: `convert` gives those that the
/// operator has for other operands. kAbsent stands for an operand or a result that is no value. Throws
/// UnsupportedForm where `use` is kRefuses.
using OperandConverter = std::function<std::vector<ir::ValueId>(const std::vector<ir::ValueId>& operands)>;
std::vector<ir::ValueId> convert_texts(OpBuilder& builder, TextUse use,
                                       const std::vector<ir::ValueId>& operands,
                                       const OperandConverter& convert);

/// Whether strings equal each other: bool, in the shape that they broadcast to. Throws Error(kInvalidModel)
/// where one of both is of numbers.
ir::ValueId equal_texts(OpBuilder& builder, ir::ValueId a, ir::ValueId b);

}  // namespace tensormill::build
