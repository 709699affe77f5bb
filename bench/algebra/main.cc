// bench_algebra [PATTERN]
// Nanoseconds of what a compile asks of the algebra of extents and indices, and of formulas as the executor
// evaluates them when shapes bind: the median of five rounds of CPU time. Prints one line each.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "compiler/te/affine.h"
#include "compiler/te/dim_facts.h"

namespace tensormill::bench {
namespace {

/// Of the CPU: others' work on the machine does not count.
double seconds_of(const std::function<int64_t()>& work, int64_t times, int64_t& sum) {
  const std::clock_t start = std::clock();
  for (int64_t i = 0; i < times; ++i) sum += work();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

/// `work` returns something that depends on what it did, so that it is done.
void measure(const std::string& pattern, const std::string& name, const std::function<int64_t()>& work) {
  if (name.find(pattern) == std::string::npos) return;
  constexpr double kRound = 0.03;
  int64_t times = 1, sum = 0;
  while (seconds_of(work, times, sum) < kRound / 10) times *= 4;
  times *= 10;
  std::vector<double> rounds;
  for (int i = 0; i < 5; ++i) rounds.push_back(seconds_of(work, times, sum) / static_cast<double>(times));
  std::nth_element(rounds.begin(), rounds.begin() + 2, rounds.end());
  std::printf("%-52s %12.1f ns%s\n", name.c_str(), rounds[2] * 1e9, sum == -1 ? " " : "");
}

void measure_formulas(const std::string& pattern) {
  const std::vector<int64_t> values = {224, 13, 512};
  const std::vector<std::string> names = {"H", "N", "S"};
  for (const char* text : {"N*S", "(H + 1)//2", "min(S - 1, max(H, 0))", "((H + 1)//2 + 1)//2*N*64 + S % 4",
                           "scaled(H, 2.5f)"}) {
    const Extent formula = Extent::parse(text).bound_to(names);
    measure(pattern, std::string("evaluate ") + text, [&] { return formula.evaluate(values).value_or(0); });
  }
  measure(pattern, "parse ((H + 1)//2 + 1)//2*N*64 + S % 4", [] {
    return static_cast<int64_t>(Extent::parse("((H + 1)//2 + 1)//2*N*64 + S % 4").ops().size());
  });
}

void measure_dims(const std::string& pattern) {
  using te::Dim;
  const Dim n = Dim::symbol("N"), s = Dim::symbol("S"), h = Dim::symbol("H");
  measure(pattern, "dim: a convolution's extent",
          [&] { return te::floordiv(h + 2 * Dim(3) - 7, 2).constant() + 1; });
  measure(pattern, "dim: the product of five extents",
          [&] { return static_cast<int64_t>((n * s * h * Dim(64) * (h + 1)).hash()); });
  measure(pattern, "dim: N*S*H*64 // (S*H)",
          [&] { return (te::floordiv(n * s * h * 64, s * h)).constant(); });
  const Dim deep = te::parse_dim("((H + 1)//2 + 1)//2*N*64 + min(S, 512) % 4");
  measure(pattern, "dim: substitute two symbols", [&] {
    return deep.substitute({{"H", 224}, {"N", 8}}).constant();
  });
  te::DimFacts facts;
  facts.declare("N", 1);
  facts.declare("S", 1, Dim(512));
  facts.declare("H", 32, std::nullopt, 32);
  measure(pattern, "facts: prove equal, structurally",
          [&] { return static_cast<int64_t>(facts.prove_equal(n * s * h, h * n * s)); });
  measure(pattern, "facts: prove (H + 1)//2 == H//2", [&] {
    return static_cast<int64_t>(facts.prove_equal(te::floordiv(h + 1, 2), te::floordiv(h, 2)));
  });
  measure(pattern, "facts: prove min(S, 600)*N <= 512*N",
          [&] { return static_cast<int64_t>(facts.prove_le(te::min(s, 600) * n, n * 512)); });
  measure(pattern, "facts: bounds of (S + 1)//2*N",
          [&] { return facts.bounds(te::floordiv(s + 1, 2) * n).low.value_or(0); });
  measure(pattern, "unify T + S == P + S", [&] {
    return static_cast<int64_t>(te::unify(Dim::symbol("T") + s, Dim::symbol("P") + s, facts).kind);
  });
}

void measure_indices(const std::string& pattern) {
  const te::Var i = te::make_var("i"), j = te::make_var("j"), k = te::make_var("k");
  te::BoundsContext context;
  context.bind(i, {0, 55});
  context.bind(j, {0, 55});
  context.bind(k, {0, 15});
  const te::Expr fused = (te::Expr(i) * 56 + j) * 16 + k;
  const te::Expr index = te::floordiv(fused, 16) * 16 + te::floormod(fused, 16);
  measure(pattern, "index: normal form for schedules",
          [&] { return static_cast<int64_t>(te::to_affine(index, context).terms.size()); });
  measure(pattern, "index: simplify", [&] { return te::simplify(index, context)->int_value; });
  measure(pattern, "index: decide by ranges", [&] {
    return static_cast<int64_t>(te::decide(index < te::Expr(56 * 56 * 16), context).value_or(false));
  });
  measure(pattern, "index: prove",
          [&] { return static_cast<int64_t>(context.proves(index < te::Expr(56 * 56 * 16))); });
}

}  // namespace
}  // namespace tensormill::bench

int main(int argc, char** argv) {
  const std::string pattern = argc > 1 ? argv[1] : "";
  tensormill::bench::measure_formulas(pattern);
  tensormill::bench::measure_dims(pattern);
  tensormill::bench::measure_indices(pattern);
  return 0;
}
