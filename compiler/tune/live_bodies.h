/// How much of a body runs. Conditions around a store leave out copies of unrolled loops: at the end of what
/// a tile does not divide, at the border of an image. Lowering cuts such loops into pieces of their own, and
/// a piece with few copies waits for latencies that the whole body hides. The cost model's features are made
/// of it. Thread-safety: Values belong to one thread; the functions are pure but for them, which they leave
/// unchanged.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "compiler/te/stmt.h"
#include "compiler/tune/traffic.h"

namespace tensormill::tune {

/// Values of the variables in scope; few enough for a search from the end.
class Values {
public:
  void push(const te::VarNode* var, int64_t value) { values_.emplace_back(var, value); }
  void pop() { values_.pop_back(); }
  int64_t* find(const te::VarNode* var);

private:
  std::vector<std::pair<const te::VarNode*, int64_t>> values_;
};

using Lets = std::vector<std::pair<te::Var, te::Expr>>;  ///< outermost first

/// The value of an index or of a condition where it follows from variables; what depends on data is 0.
int64_t evaluate(const te::Expr& expr, Values& values);
/// Evaluates the lets anew after a loop's variable has changed.
void update_lets(const Lets& lets, Values& values);

struct LiveBody {
  double share = 1;             ///< of all bodies
  std::vector<NestLoop> loops;  ///< the unrolled ones of the body with the copies that run, 0 where none do
};

/// The bodies that the loops run, by how many copies of each unrolled loop `conditions` leave; the shares add
/// up to 1. Of many iterations every so many are looked at; conditions are taken to be independent of each
/// other. `values`: the loops' first iterations.
std::vector<LiveBody> live_bodies(const std::vector<te::Expr>& conditions, const std::vector<NestLoop>& loops,
                                  const Lets& lets, Values& values);

}  // namespace tensormill::tune
