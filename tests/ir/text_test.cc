/// The text form: what is printed parses back to the same, and what is not a graph is refused with its place.
#include <gmock/gmock.h>

#include <cstring>
#include <random>

#include "compiler/ir/op_def.h"
#include "compiler/ir/printer.h"
#include "runtime/base/error.h"
#include "tests/ir/support.h"

namespace tensormill::ir {
namespace {

TEST(Text, PrintsWhatItParses) {
  const std::string text = R"(graph "all of it" (%x: f32[2,3], %"odd name/0": i64[4]) {
  %c = const f32[2] {1.5, -inf}
  %e = const i64[0] {}
  %b = const bool[] {1}
  %n = const f32[] {nan}
  %y: f32[2,3] = clip(%x, _, %n) {min: -1.0} from ["a", "b\"\\\x0a"]
  %p: f32[3,2] = transpose(%y) {perm: ints[1, 0]}
  %h: f16[3,2] = cast(%p) {to: f16}
  %s0: f16[1,2], %s1: f16[2,2] = split(%h) {axis: 0, sizes: ints[1, 2]}
  %g: f16[2,2] = gelu(%s1) {approximate: "tanh"}
  return %g, %s0, %c
}
)";
  const std::string printed = reprinted(text);
  EXPECT_EQ(reprinted(printed), printed);
  for (const char* part :
       {"graph \"all of it\"", "%\"odd name/0\": i64[4]", "-inf", "nan", "(%x, _, %n)", "\"b\\\"\\\\\\x0a\"",
        "ints[1, 0]", "to: f16", "%s0: f16[1,2], %s1: f16[2,2] = split", "approximate: \"tanh\"",
        "return %g, %s0, %c"}) {
    EXPECT_THAT(printed, testing::HasSubstr(part));
  }
}

TEST(Text, ValuesAreReadBackBitForBit) {
  Graph graph(ops::standard_ops());
  Tensor tensor(DType::kFloat32, {6});
  const double values[] = {0.1, -0.0, 1e-45, 3.4028234663852886e38, 1.0 / 3, 16777217.0};
  for (int64_t i = 0; i < 6; ++i) tensor.set_element(i, values[i]);
  Tensor wide(DType::kInt64, {2});
  wide.set_element_int(0, INT64_MIN);
  wide.set_element_int(1, INT64_MAX);
  graph.set_outputs({graph.add_constant("f", tensor), graph.add_constant("i", wide)});
  const Graph again = graph_of(print(graph));
  for (size_t k = 0; k < 2; ++k) {
    const Tensor& before = *graph.value(graph.outputs()[k]).constant;
    const Tensor& after = *again.value(again.outputs()[k]).constant;
    EXPECT_EQ(std::memcmp(before.data(), after.data(), before.num_bytes()), 0);
  }
  EXPECT_EQ(hash(again), hash(graph));
}

TEST(Text, APrinterOfManyGraphsPrintsEachAsItIs) {
  const auto graph_with = [](float fill) {
    Graph graph(ops::standard_ops());
    const std::vector<float> values(100, fill);
    graph.set_outputs({graph.add_constant("c", Tensor::from<float>({100}, values))});
    return graph;
  };
  GraphPrinter printer;
  const Graph kept = graph_with(1);
  EXPECT_EQ(printer.print(kept), print(kept));
  EXPECT_EQ(printer.print(kept), print(kept));
  // The memory of what is gone goes to constants that come after it.
  for (int i = 0; i < 20; ++i) {
    const Graph passing = graph_with(static_cast<float>(i));
    EXPECT_EQ(printer.print(passing), print(passing)) << i;
  }
}

TEST(Text, FusedRegionsNest) {
  const std::string text = R"(graph "fused" (%x: f32[4]) {
  %y: f32[4] = fused(%x) from ["a"] (%p: f32[4]) {
    %t: f32[4] = neg(%p)
    %u: f32[4] = abs(%t)
    return %u
  }
  return %y
}
)";
  const std::string printed = reprinted(text);
  EXPECT_EQ(reprinted(printed), printed);
  const Graph graph = graph_of(text);
  ASSERT_NE(graph.nodes()[0].region, nullptr);
  EXPECT_EQ(graph.nodes()[0].region->nodes().size(), 2u);
}

TEST(Text, LargeConstantsStandByTheirDigest) {
  Graph graph(ops::standard_ops());
  Tensor tensor = Tensor::zeros(DType::kFloat32, {17});
  tensor.set_element(3, 2.5);
  graph.set_outputs({graph.add_constant("w", tensor)});
  const Digest digest =
      Digest::of(std::string_view(static_cast<const char*>(tensor.data()), tensor.num_bytes()));
  const std::string text = print(graph);
  EXPECT_THAT(text, testing::HasSubstr("const f32[17] " + digest.text()));
  const Graph again = parse_graph(text, ops::standard_ops(), {{digest, tensor}});
  EXPECT_EQ(again.value(again.outputs()[0]).constant->element_as_double(3), 2.5);
  EXPECT_THROW(graph_of(text), Error) << "the bytes are not given";
}

TEST(Hash, SeesEveryPartOfAGraph) {
  const std::string base =
      "graph \"g\" (%x: f32[3]) {\n  %c = const f32[] {1.0}\n  %y: f32[3] = add(%x, %c)\n  return %y\n}\n";
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = base;
    text.replace(text.find(from), from.size(), to);
    return hash(graph_of(text));
  };
  const Digest own = hash(graph_of(base));
  EXPECT_EQ(hash(graph_of(reprinted(base))), own);
  EXPECT_NE(changed("{1.0}", "{2.0}"), own);
  EXPECT_NE(changed("{1.0}", "{-1.0}"), own);
  EXPECT_NE(changed("= add", "= sub"), own);
  EXPECT_NE(changed("add(%x, %c)", "add(%c, %x)"), own);
  EXPECT_NE(changed("return %y", "return %x"), own);
  EXPECT_NE(changed("add(%x, %c)", "add(%x, %c) from [\"n\"]"), own);
}

struct Wrong {
  const char* what;
  std::string from, to, words;
};

TEST(Text, MistakesAreNamedWithTheirPlace) {
  const std::string base =
      "graph \"g\" (%x: f32[2,3]) {\n  %y: f32[3,2] = transpose(%x) {perm: ints[1, 0]}\n  return %y\n}\n";
  ASSERT_NO_THROW(graph_of(base));
  const Wrong cases[] = {{"operator", "transpose", "transpos", "transpos"},
                         {"unknown value", "(%x)", "(%z)", "z"},
                         {"declared type", "f32[3,2]", "f32[2,3]", "f32["},
                         {"dtype", "%x: f32", "%x: f31", "f31"},
                         {"negative extent", "%x: f32[2,3]", "%x: f32[-2,3]", "[-2,3]"},
                         {"attribute", "ints[1, 0]", "ints[1, 5]", "5"},
                         {"attribute list", "ints[1, 0]", "ints[1, 0", "expected"},
                         {"no return", "return %y\n", "", "line 3"},
                         {"text after", "return %y\n}", "return %y\n}\nmore", "after the graph"},
                         {"name twice", "%y:", "%x:", "x"},
                         {"quotes", "\"g\"", "\"g", "line"}};
  for (const Wrong& wrong : cases) {
    SCOPED_TRACE(wrong.what);
    std::string text = base;
    text.replace(text.find(wrong.from), wrong.from.size(), wrong.to);
    try {
      graph_of(text);
      ADD_FAILURE() << "accepted:\n" << text;
    } catch (const Error& error) {
      EXPECT_THAT(error.message(), testing::HasSubstr(wrong.words));
    }
  }
}

TEST(Text, AValueIsDefinedBeforeItIsRead) {
  EXPECT_THROW(graph_of("graph \"g\" (%x: f32[2]) {\n  %y: f32[2] = add(%x, %z)\n  %z: f32[2] = neg(%x)\n"
                        "  return %y\n}\n"),
               Error);
}

/// Bytes of a valid text changed at random: an error or a graph that verifies, never anything else.
TEST(Text, RandomEditsAreRefusedOrGiveAValidGraph) {
  const std::string base = R"(graph "g" (%x: f32[2,3], %i: i64[2]) {
  %c = const f32[3] {1.0, 2.0, 3.0}
  %y: f32[3,2] = transpose(%x) {perm: ints[1, 0]} from ["t"]
  %g: f32[2,2] = gather(%y, %i) {axis: 0}
  %z: f32[2,3] = fused(%x, %c) (%p: f32[2,3], %q: f32[3]) {
    %s: f32[2,3] = add(%p, %q)
    return %s
  }
  return %g, %z
}
)";
  ASSERT_NO_THROW(verify(graph_of(base)));
  std::mt19937_64 random(5);
  const std::string alphabet = "0123456789-[]{}(),:%\"\\_ \nabcfrinstx.#";
  int refused = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string text = base;
    for (int edits = 0; edits < 1 + round % 3; ++edits) {
      const size_t at = random() % text.size();
      const char letter = alphabet[random() % alphabet.size()];
      switch (random() % 3) {
        case 0:
          text[at] = letter;
          break;
        case 1:
          text.erase(at, 1 + random() % 4);
          break;
        default:
          text.insert(at, 1, letter);
      }
    }
    try {
      verify(graph_of(text));
    } catch (const Error& error) {
      EXPECT_FALSE(error.message().empty());
      ++refused;
    }
  }
  EXPECT_GT(refused, 2000);
  EXPECT_LT(refused, 4000);
}

}  // namespace
}  // namespace tensormill::ir
