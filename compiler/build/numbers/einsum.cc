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
    ir::SymShape shape = c.shape(x.value);
    if (shape[i] != shape[j]) context.invalid("two axes of one letter have other extents");
    // Along axis j the element of axis i's position, then one of the j axis.
    ir::SymShape along(shape.size(), 1);
    along[i] = shape[i];
    const std::vector<int64_t> positions = c.count_to(shape[i]);
    shape[j] = 1;
    const ir::ValueId indices = c.expand(c.ints(positions, along), shape);
    x.value =
        c.squeeze(c.gather_elements(x.value, indices, static_cast<int64_t>(j)), static_cast<int64_t>(j));
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

ir::SymInt extent_of(Compose& c, const Labelled& x, const std::string& letters) {
  ir::SymInt product = 1;
  const ir::SymShape shape = c.shape(x.value);
  for (char letter : letters) product *= shape[x.letters.find(letter)];
  return product;
}

/// Product of two operands, summed over the letters that are not wanted any more.
Labelled multiplied(OpBuilder& context, Labelled a, Labelled b, const std::string& wanted) {
  Compose c(context);
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
  const bool broadcasts = [&] {
    const ir::SymShape as = c.shape(a.value), bs = c.shape(b.value);
    for (char letter : batch + depth) {
      if (as[a.letters.find(letter)] != bs[b.letters.find(letter)]) return true;
    }
    return false;
  }();
  if (depth.empty() || broadcasts) {
    const ir::ValueId product = c.mul(arranged(c, a, all + depth), arranged(c, b, all + depth));
    return summed(c, {product, all + depth}, wanted);
  }
  const ir::SymInt m = extent_of(c, a, rows), n = extent_of(c, b, columns), k = extent_of(c, a, depth);
  const ir::SymInt stacks = extent_of(c, a, batch);
  const ir::ValueId left = c.reshape(arranged(c, a, batch + rows + depth), {stacks, m, k});
  const ir::ValueId right = c.reshape(arranged(c, b, batch + depth + columns), {stacks, k, n});
  ir::SymShape shape;
  const ir::SymShape as = c.shape(a.value), bs = c.shape(b.value);
  for (char letter : all)
    shape.push_back(has(a.letters, letter) ? as[a.letters.find(letter)] : bs[b.letters.find(letter)]);
  return {c.reshape(c.matmul(left, right), shape), all};
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
    result = multiplied(context, result, operands[i], wanted);
  }
  result = summed(c, result, output);
  for (char letter : output) {
    if (!has(result.letters, letter)) context.invalid("no operand has the output's letter");
  }
  return c.cast(arranged(c, result, output), c.dtype(given[0]));
}

}  // namespace tensormill::build
