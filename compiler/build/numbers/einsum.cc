// Operands with their letters as axes; pairs of operands are multiplied as stacks of matrices.
#include "compiler/build/numbers/einsum.h"

#include <algorithm>
#include <map>

#include "compiler/build/compose.h"
#include "runtime/base/error.h"

namespace tensormill::build {

namespace {

/// A value whose axes are named by the letters, each once.
struct Labelled {
  ir::ValueId value;
  std::string letters;
};

bool has(const std::string& letters, char letter) { return letters.find(letter) != std::string::npos; }

std::vector<std::string> split_operands(const std::string& text) {
  std::vector<std::string> parts{""};
  for (char letter : text) {
    if (letter == ',') {
      parts.emplace_back();
    } else {
      parts.back() += letter;
    }
  }
  return parts;
}

/// "..." becomes as many capital-like letters (from 1 upwards, which no equation uses) as it stands for.
std::string named_ellipsis(const OpBuilder& context, std::string letters, int64_t rank, int64_t& longest) {
  const size_t at = letters.find("...");
  if (at == std::string::npos) return letters;
  const int64_t count = rank < 0 ? longest : rank - static_cast<int64_t>(letters.size()) + 3;
  if (count < 0 || count > 31)
    context.invalid("the ellipsis of \"" + letters + "\" stands for " + std::to_string(count) + " axes");
  if (rank >= 0) longest = std::max(longest, count);
  std::string names;
  for (int64_t i = count; i > 0; --i) names += static_cast<char>(i);
  return letters.replace(at, 3, names);
}

/// Takes the diagonal of axes that have one letter.
Labelled without_repeats(OpBuilder& context, Labelled x) {
  Compose c(context);
  for (size_t i = 0; i < x.letters.size(); ++i) {
    const size_t j = x.letters.find(x.letters[i], i + 1);
    if (j == std::string::npos) continue;
    const ir::SymShape shape = c.shape(x.value);
    if (!ir::demand(ir::Relation::kEqual, shape[i], shape[j]))
      context.invalid("axes " + std::to_string(i) + " and " + std::to_string(j) + " of shape " +
                      to_string(shape) + " have one letter");
    // Along axis j the element of axis i's position, then one of the j axis.
    ir::SymShape once = shape;
    once[j] = 1;
    const ir::ValueId positions = c.expand(c.positions(shape[i], i, shape.size()), once);
    const auto axis = static_cast<int64_t>(j);
    x.value = c.squeeze(c.gather_elements(x.value, positions, axis), axis);
    x.letters.erase(j, 1);
    --i;
  }
  return x;
}

/// Sums the axes whose letters are not in `wanted`.
Labelled summed(Compose& c, const Labelled& x, const std::string& wanted) {
  std::vector<int64_t> axes;
  Labelled result{x.value, ""};
  for (size_t i = 0; i < x.letters.size(); ++i) {
    if (has(wanted, x.letters[i])) {
      result.letters += x.letters[i];
    } else {
      axes.push_back(static_cast<int64_t>(i));
    }
  }
  result.value = c.reduce("reduce_sum", x.value, axes, false);
  return result;
}

/// The axes in the order of `letters`; those that x lacks get extent 1.
ir::ValueId arranged(Compose& c, const Labelled& x, const std::string& letters) {
  std::vector<int64_t> perm;
  ir::SymShape shape;
  const ir::SymShape have = c.shape(x.value);
  for (char letter : letters) {
    const size_t at = x.letters.find(letter);
    shape.push_back(at == std::string::npos ? ir::SymInt(1) : have[at]);
    if (at != std::string::npos) perm.push_back(static_cast<int64_t>(at));
  }
  const ir::ValueId moved = std::is_sorted(perm.begin(), perm.end()) ? x.value : c.transpose(x.value, perm);
  return c.reshape(moved, shape);
}

ir::SymShape extents_of(Compose& c, const Labelled& x, const std::string& letters) {
  ir::SymShape extents;
  const ir::SymShape shape = c.shape(x.value);
  for (char letter : letters) extents.push_back(shape[x.letters.find(letter)]);
  return extents;
}

/// x with these axes, which the other operand has as well, as long as there where they have one element.
Labelled widened(Compose& c, const Labelled& x, const Labelled& other, const std::string& letters) {
  ir::SymShape shape = c.shape(x.value);
  const ir::SymShape whole = broadcast_shapes(extents_of(c, x, letters), extents_of(c, other, letters));
  bool is_shorter = false;
  for (size_t i = 0; i < letters.size(); ++i) {
    ir::SymInt& extent = shape[x.letters.find(letters[i])];
    if (is_proven(ir::Relation::kEqual, extent, whole[i])) continue;
    extent = whole[i];
    is_shorter = true;
  }
  return {is_shorter ? c.expand(x.value, shape) : x.value, x.letters};
}

/// The operand as matrices: its batch as it is, `rows` and `columns` as one axis each.
ir::ValueId matrices_of(Compose& c, const Labelled& x, const std::string& batch, const std::string& rows,
                        const std::string& columns) {
  ir::SymShape shape = extents_of(c, x, batch);
  for (const std::string& letters : {rows, columns}) shape.push_back(num_elements(extents_of(c, x, letters)));
  return c.reshape(arranged(c, x, batch + rows + columns), shape);
}

/// Product of two operands, summed over the letters that are not wanted any more.
Labelled multiplied(Compose& c, Labelled a, Labelled b, const std::string& wanted) {
  a = summed(c, a, wanted + b.letters);
  b = summed(c, b, wanted + a.letters);
  std::string batch, rows, columns, depth;
  for (char letter : a.letters) {
    const bool shared = has(b.letters, letter);
    (shared && has(wanted, letter) ? batch : shared ? depth : rows) += letter;
  }
  for (char letter : b.letters) {
    if (!has(a.letters, letter)) columns += letter;
  }
  const std::string all = batch + rows + columns;
  if (depth.empty()) return {c.mul(arranged(c, a, all), arranged(c, b, all)), all};
  a = widened(c, a, b, depth);
  b = widened(c, b, a, depth);
  const ir::ValueId product =
      c.matmul(matrices_of(c, a, batch, rows, depth), matrices_of(c, b, batch, depth, columns));
  ir::SymShape shape = c.shape(product);
  shape.resize(batch.size());
  for (const ir::SymInt& extent : extents_of(c, a, rows)) shape.push_back(extent);
  for (const ir::SymInt& extent : extents_of(c, b, columns)) shape.push_back(extent);
  return {c.reshape(product, shape), all};
}

/// Without an arrow: the letters that stand once, in order, behind the ellipsis.
std::string implied_output(const std::string& inputs) {
  std::map<char, int> counts;
  for (char letter : inputs) counts[letter] += letter != ',' && letter != '.';
  std::string result = has(inputs, '.') ? "..." : "";
  for (const auto& [letter, count] : counts) {
    if (count == 1) result += letter;
  }
  return result;
}

}  // namespace

ir::ValueId einsum(OpBuilder& context, std::string equation, const std::vector<ir::ValueId>& given) {
  Compose c(context);
  equation.erase(std::remove(equation.begin(), equation.end(), ' '), equation.end());
  const size_t arrow = equation.find("->");
  const std::string inputs = equation.substr(0, arrow);
  const std::vector<std::string> letters = split_operands(inputs);
  if (letters.size() != given.size())
    context.invalid("equation \"" + equation + "\" has " + std::to_string(letters.size()) +
                    " operands, the node " + std::to_string(given.size()));
  if (given.empty()) context.invalid("it has no operands");
  int64_t longest = 0;
  std::vector<Labelled> operands;
  for (size_t i = 0; i < letters.size(); ++i) {
    const int64_t rank = context.rank(given[i]);
    const std::string named = named_ellipsis(context, letters[i], rank, longest);
    if (static_cast<int64_t>(named.size()) != rank)
      context.invalid("operand " + std::to_string(i) + " has rank " + std::to_string(rank) + ", \"" +
                      letters[i] + "\" has other letters");
    operands.push_back(without_repeats(context, {c.summable(given[i]), named}));
  }
  const std::string output = named_ellipsis(
      context, arrow == std::string::npos ? implied_output(inputs) : equation.substr(arrow + 2), -1, longest);
  Labelled result = operands[0];
  for (size_t i = 1; i < operands.size(); ++i) {
    std::string wanted = output;
    for (size_t rest = i + 1; rest < operands.size(); ++rest) wanted += operands[rest].letters;
    result = multiplied(c, result, operands[i], wanted);
  }
  result = summed(c, result, output);
  for (char letter : output) {
    if (!has(result.letters, letter)) context.invalid("no operand has the output's letter");
  }
  return c.cast(arranged(c, result, output), c.dtype(given[0]));
}

}  // namespace tensormill::build
