#include "compiler/te/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/te/text.h"
#include "runtime/base/error.h"

namespace tensormill::te::verify_test {
namespace {

std::string verdict(const std::string& text, Level level) {
  try {
    verify(parse_function(text), level);
  } catch (const InternalError& error) {
    return error.what();
  }
  return "fine";
}

/// Parameters a: f32[64], k: i64[8], out b: f32[64], out c: f32[4, 16] (at kLoops only).
std::string with_body(const std::string& body) {
  return "function f {\n  in a: f32[64]\n  in k: i64[8]\n  out b: f32[64]\n  out c: f32[4, 16]\n  body {\n" +
         body + "\n  }\n}\n";
}
std::string flat(const std::string& body, const std::string& header = "") {
  return "function f {\n  in a: f32[64]\n  in k: i64[8]\n  out b: f32[64]\n" + header + "  body {\n" + body +
         "\n  }\n}\n";
}

struct Case {
  const char* body;
  const char* verdict;
};

TEST(Verify, AcceptsLoops) {
  const char* bodies[] = {
      "for i = 0, 64 { b[i] = a[(63 - i)] }",
      // A split of 50 by 16, guarded and clipped.
      "for o = 0, 4 { for i = 0, 16 { if (((o * 16) + i) < 50) { b[((o * 16) + i)] = 1:f32 } } }",
      // The guard holds what a task's loops run over below the next task's.
      "parallel p = 0, 8 { for i = 0, 1 { for l = 0, 16 { if (((i * 16) + l) < 5) { b[((p * 5) + ((i * 16) + "
      "l))] = 1:f32 } } } }",
      "parallel p = 0, 8 { b[((p * 5) + ramp.8(0, 1)); (ramp.8(0, 1) < broadcast.8(5))] = 1:f32x8 }",
      "for o = 0, 5 { for i = 0, min(16, (64 - (o * 16))) { b[((o * 16) + i)] = 1:f32 } }",
      // A masked tail.
      "for o = 0, 9 { b[ramp.8((o * 8), 1); (ramp.8((o * 8), 1) < broadcast.8(60))] = 1:f32x8 }",
      // Padding by clamped reads.
      "for i = 0, 64 { b[i] = select((i > 0), a[max((i - 1), 0)], 0:f32) }",
      "for i = 0, 8 { b[i] = a[check_index(k[i], 64)] }",
      "for f = 0, 64 { c[floordiv(f, 16), floormod(f, 16)] = 1:f32 }",
      "parallel f = 0, 64 { c[floordiv(f, 16), floormod(f, 16)] = a[f] }",
      "parallel f = 0, 4 { for i = 0, 16 { c[f, i] = a[0] } for i = 0, 16 { c[f, (15 - i)] = c[f, i] } }",
      "parallel p = 0, 8 { for i = 0, 8 { b[((p * 8) + i)] = 1:f32 } }",
      // Tasks over two of three axes of a flattened tensor, the inner one between them.
      // NOLINTNEXTLINE(bugprone-suspicious-missing-comma)
      "parallel p = 0, 8 { for i = 0, 4 { for w = 0, 2 { "
      "b[((((floordiv(p, 4) * 32) + (i * 8)) + (floormod(p, 4) * 2)) + w)] = 1:f32 } } }",
      // Fused axes cut into pieces, taken apart under the guards of the tails.
      "parallel p = 0, 3 { for i = 0, 23 { let x: i64 = ((p * 23) + i) { if (x < 64) { "
      "c[floordiv(x, 16), (x - (floordiv(x, 16) * 16))] = 1:f32 } } } }",
      "parallel p = 0, 2 { for i = 0, 7 { let x: i64 = ((p * 7) + i) { if (x < 12) { for j = 0, 6 { "
      "if (((floormod(x, 3) * 6) + j) < 16) { c[floordiv(x, 3), ((floormod(x, 3) * 6) + j)] = 1:f32 } } } } "
      "} }",
      "parallel p = 0, 4 { let q: i64 = (p * 16) { vectorized i = 0, 16 { b[(q + i)] = a[i] } } }",
      "parallel p = 0, 8 { allocate t: f32[8] worker { t[0] = a[p] b[p] = t[0] } }",
  };
  for (const std::string body : bodies) {
    EXPECT_EQ(verdict(with_body(body), Level::kLoops), "fine") << body;
  }
}

TEST(Verify, AcceptsSymbolicExtents) {
  const std::string text = R"(function f {
  dims n, m
  in a: f32[n, m]
  out b: f32[n, m]
  body {
    parallel o = 0, floordiv((n + 15), 16) {
      for i = 0, min(16, (n - (o * 16))) {
        for j = 0, m {
          b[((o * 16) + i), j] = a[((o * 16) + i), ((m - 1) - j)]
        }
      }
    }
  }
}
)";
  EXPECT_EQ(verdict(text, Level::kLoops), "fine");
}

TEST(Verify, TakesACheckedIndexByItsName) {
  const auto named = [](const std::string& guard, const std::string& body) {
    return verdict("function f {\n  dims n\n  in a: f32[n]\n  in k: i64[8]\n  out b: f32[8]\n  body {\n" +
                       guard + body + " }\n  }\n}\n",
                   Level::kLoops);
  };
  const std::string guard = "if (n >= 1) { ", any = "if (n >= 0) { ";
  const std::string inside = "for i = 0, 8 { let t: i64 = check_index(k[i], n) { b[i] = a[t] } }";
  const std::string above = "for i = 0, 8 { let t: i64 = check_index(k[i], (n + 1)) { b[i] = a[t] } }";
  const std::string again =
      "for i = 0, 8 { let t: i64 = check_index(k[i], n) { b[i] = a[t] } let t: i64 = n { b[i] = a[t] } }";
  EXPECT_EQ(named(guard, inside), "fine");
  for (const std::string& refused : {named(any, inside), named(guard, above), named(guard, again)})
    EXPECT_THAT(refused, ::testing::HasSubstr("is not shown to be in [0, n)"));
}

TEST(Verify, RejectsLoops) {
  const Case cases[] = {
      {"for i = 0, 65 { b[i] = 1:f32 }",
       "verify: store to b[i]: index i of dimension 0 is not shown to be in [0, 64)"},
      {"for i = 0, 64 { b[i] = a[(i - 1)] }",
       "verify: load of a[(i - 1)]: index (i - 1) of dimension 0 is not shown to be in [0, 64)"},
      {"for i = 0, 64 { b[i] = select((i > 0), a[(i - 1)], 0:f32) }", "is not shown to be in [0, 64)"},
      {"for o = 0, 9 { b[ramp.8((o * 8), 1); (ramp.8((o * 8), 1) < broadcast.8(65))] = 1:f32x8 }",
       "verify: store to b[ramp.8((o * 8), 1)]: index ramp.8((o * 8), 1) of dimension 0"},
      {"for i = 0, 8 { b[i] = a[k[i]] }",
       "verify: load of a[k[i]]: the address depends on data without check_index"},
      {"for i = 0, 8 { b[i] = a[max(min(k[i], 63), 0)] }", "the address depends on data without check_index"},
      {"let q: i64 = k[0] { b[floormod(q, 64)] = 1:f32 }", "the address depends on data without check_index"},
      {"for i = 0, k[0] { b[floormod(i, 64)] = 1:f32 }", "the address depends on data without check_index"},
      {"for i = 0, 8 { b[i] = a[check_index(k[i], 65)] }", "is not shown to be in [0, 64)"},
      {"parallel p = 0, 8 { b[0] = 1:f32 }", "verify: tasks of parallel loop p may race: b[0] and b[0]"},
      {"parallel p = 0, 8 { b[floordiv(p, 2)] = 1:f32 }",
       "may race: b[floordiv(p, 2)] and b[floordiv(p, 2)]"},
      {"parallel p = 0, 8 { for i = 0, 9 { b[((p * 7) + i)] = 1:f32 } }",
       "verify: tasks of parallel loop p may race"},
      {"parallel p = 0, 8 { b[(p + 1)] = b[p] }", "may race: b[(p + 1)] and b[p]"},
      {"parallel p = 0, 8 { b[check_index(k[p], 64)] = 1:f32 }", "verify: tasks of parallel loop p may race"},
      // What holds where one of two stores happens is not known of the other one.
      {"parallel p = 0, 8 { for i = 0, 2 { for l = 0, 4 { if (((i * 4) + l) < 5) { b[((p * 5) + ((i * 4) + "
       "l))] = 1:f32 } "
       "b[((p * 5) + ((i * 4) + l))] = 2:f32 } } }",
       "verify: tasks of parallel loop p may race"},
      {"parallel p = 0, 8 { for l = 0, 8 { if (l < 5) { b[((p * 5) + l)] = 1:f32 } b[((p * 5) + l)] = 2:f32 "
       "} }",
       "verify: tasks of parallel loop p may race"},
      {"parallel p = 0, 2 { parallel q = 0, 2 { b[((p * 2) + q)] = 1:f32 } }",
       "verify: parallel loop q is inside a parallel loop"},
      {"allocate t: f32[8] worker { parallel p = 0, 8 { t[p] = 1:f32 } }",
       "verify: store to t[p]: a worker's buffer is used in a parallel loop outside of which it is "
       "allocated"},
      {"vectorized i = 0, k[0] { b[0] = 1:f32 }",
       "verify: vectorized loop i has extent k[0], which is not constant"},
      {"for i = 0, 4 { allocate t: f32[(i + 1)] register { t[0] = 1:f32 } }",
       "verify: register buffer t has extent (i + 1), which is not constant"},
      {"allocate t: f32[k[0]] worker { t[0] = 1:f32 }", "verify: the size of buffer t depends on data"},
  };
  for (const Case& test : cases) {
    EXPECT_THAT(verdict(with_body(test.body), Level::kLoops), ::testing::HasSubstr(test.verdict))
        << test.body;
  }
}

TEST(Verify, RejectsLevels) {
  EXPECT_THAT(verdict(with_body("b[0] = 1:f32"), Level::kFlat),
              ::testing::HasSubstr("buffer c has 2 dimensions, not 1"));
  EXPECT_EQ(verdict(flat("vectorized i = 0, 4 { b[i] = exp(a[i]) }"), Level::kFlat), "fine");
  EXPECT_THAT(verdict(flat("vectorized i = 0, 4 { b[i] = a[i] }"), Level::kCodegen),
              ::testing::HasSubstr("verify: vectorized loop i is left"));
  EXPECT_THAT(verdict(flat("b[0] = exp(a[0])"), Level::kCodegen),
              ::testing::HasSubstr("verify: operator exp is not legalized"));
  EXPECT_THAT(verdict(flat("allocate t: f32[4] register { for i = 0, 4 { t[i] = 1:f32 } }"), Level::kCodegen),
              ::testing::HasSubstr("store to t[i]: the index of a register buffer is not constant"));
}

TEST(Verify, ChecksTheWorkspace) {
  const auto nest = [](const char* second) {
    return flat("allocate s: f32[16] shared { allocate t: f32[16] shared " + std::string(second) +
                    " { s[0] = 1:f32 t[0] = 1:f32 } }",
                "  workspace 128 0\n");
  };
  EXPECT_EQ(verdict(nest("at 64"), Level::kFlat), "fine");
  EXPECT_THAT(verdict(nest(""), Level::kFlat),
              ::testing::HasSubstr("verify: buffers s and t overlap in the workspace"));
  EXPECT_THAT(
      verdict(nest("at 128"), Level::kFlat),
      ::testing::HasSubstr("buffer t at [128, 192) is not aligned or leaves its workspace of 128 bytes"));
  EXPECT_THAT(verdict(nest("at 32"), Level::kFlat), ::testing::HasSubstr("is not aligned"));
}

TEST(Verify, ChecksNamesAndAliases) {
  Function function = parse_function(flat("b[0] = 1:f32"));
  const Var loose = make_var("loose");
  function.body = make_store(function.parameters[2].buffer, {Expr(0)}, cast(DType::kFloat32, Expr(loose)));
  EXPECT_THROW(verify(function, Level::kLoops), InternalError);
  const Buffer nowhere = make_buffer("nowhere", DType::kFloat32, {Expr(4)}, Scope::kRegister);
  function.body = make_store(nowhere, {Expr(0)}, float_imm(DType::kFloat32, 0));
  EXPECT_THROW(verify(function, Level::kLoops), InternalError);
  function = parse_function(flat("b[0] = 1:f32"));
  function.name = "Bad-Name";
  EXPECT_THROW(verify(function, Level::kLoops), InternalError);
  // In place at the same index is no race; at another index it is.
  const std::string alias = "function f {\n  in a: f32[8] alias 0\n  out b: f32[8] alias 0\n  body {\n";
  EXPECT_EQ(verdict(alias + "parallel i = 0, 8 { b[i] = a[i] } } }", Level::kLoops), "fine");
  EXPECT_THAT(verdict(alias + "parallel i = 0, 8 { b[i] = a[(7 - i)] } } }", Level::kLoops),
              ::testing::HasSubstr("may race"));
}

}  // namespace
}  // namespace tensormill::te::verify_test
