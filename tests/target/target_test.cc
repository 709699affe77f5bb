#include "compiler/target/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "compiler/target/features.h"
#include "runtime/base/error.h"

namespace tensormill::target {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

Target fake_host() {
  Target host;
  host.triple = "x86_64-linux-gnu";
  host.cpu = "haswell";
  host.facts.num_cores = 6;
  host.facts.l1d_bytes = 48 * 1024;
  host.facts.l2_bytes = 2048 * 1024;
  host.facts.vector_bits = 256;
  host.facts.fma = true;
  return host;
}

std::string message_of(std::string_view text, ErrorCode expected = ErrorCode::kInvalidTarget) {
  try {
    parse_target(text, fake_host());
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), expected) << error.message();
    return error.message();
  }
  ADD_FAILURE() << text << " was accepted";
  return "";
}

TEST(Target, EveryKnownCpuRoundTripsThroughItsCanonicalForm) {
  for (const CpuRow& row : all_cpus()) {
    const std::string text =
        "llvm -mcpu=" + std::string(row.name) + " -mtriple=" + std::string(row.arch) + "-linux-gnu";
    const Target target = parse_target(text, fake_host());
    EXPECT_EQ(target.cpu, row.name);
    EXPECT_TRUE(target.features.empty()) << text;
    EXPECT_EQ(parse_target(target.canonical(), fake_host()).canonical(), target.canonical());
    EXPECT_EQ(parse_target(target.canonical(), fake_host()).digest(), target.digest());
  }
  EXPECT_THAT(known_cpus(), Contains("core-avx2"));
}

TEST(Target, TheRuntimeKnowsEveryFeatureOfEveryCpu) {
  for (const CpuRow& row : all_cpus()) {
    const Target target = parse_target(
        "llvm -mcpu=" + std::string(row.name) + " -mtriple=" + std::string(row.arch) + "-linux-gnu",
        fake_host());
    for (const std::string& name : target.required_features()) {
      EXPECT_NE(find_cpu_feature(row.arch, name), nullptr) << row.name << " " << name;
    }
  }
}

TEST(Target, RowsOfFeaturesStandAfterWhatTheyImplyAndSayOneBitEach) {
  std::set<std::string> seen;
  std::set<std::tuple<std::string_view, uint32_t, uint32_t, char, int>> bits;
  for (const CpuFeature& row : cpu_features()) {
    const std::string arch(row.arch);
    for (std::string_view implied : words(row.implies)) {
      EXPECT_TRUE(seen.count(arch + " " + std::string(implied)) == 1) << row.name << " " << implied;
    }
    EXPECT_TRUE(seen.insert(arch + " " + std::string(row.name)).second) << row.name;
    EXPECT_TRUE(bits.insert({row.arch, row.leaf, row.subleaf, row.reg, row.bit}).second) << row.name;
    EXPECT_TRUE(row.bit >= 0 && row.bit < 32 && row.reg >= 'a' && row.reg <= 'd') << row.name;
  }
}

TEST(Target, TheHostHasWhatItsOwnTargetRequires) {
  EXPECT_THAT(missing_cpu_features(host_target().required_features()), testing::IsEmpty());
}

TEST(Target, NamedCpuTakesItsFactsFromTheTableNotFromTheHost) {
  const Target target = parse_target("llvm -mcpu=skylake-avx512", fake_host());
  EXPECT_EQ(target.facts.vector_bits, 512);
  EXPECT_EQ(target.facts.vector_registers, 32);
  EXPECT_TRUE(target.facts.fma);
  EXPECT_EQ(target.facts.l1d_bytes, 32 * 1024);
  EXPECT_EQ(target.facts.l2_bytes, 1024 * 1024);
  EXPECT_EQ(target.facts.num_cores, 1);
  EXPECT_TRUE(target.is_x86());
}

TEST(Target, RatesFollowFromTheCpuAndTheWidthOfVectors) {
  const auto products = [](const std::string& text) {
    return parse_target("llvm -mcpu=" + text, fake_host()).facts.products_per_cycle;
  };
  EXPECT_EQ(products("znver4"), 1) << "512 bits take both pipes";
  EXPECT_EQ(products("znver4 -vector-width=256"), 2);
  EXPECT_EQ(products("znver4 -mattr=-avx512f"), 2);
  for (const char* cpu : {"sapphirerapids", "skylake-avx512", "znver5", "haswell", "znver3", "x86-64-v4"})
    EXPECT_EQ(products(cpu), 2) << cpu;
  const Target target = parse_target("llvm -mcpu=znver4", fake_host());
  EXPECT_GT(target.facts.streamed_bytes, parse_target("llvm", fake_host()).facts.streamed_bytes);
  EXPECT_EQ(parse_target(target.canonical(), fake_host()).facts.products_per_cycle, 1);
}

TEST(Target, NativeIsResolvedToTheHost) {
  const Target host = fake_host();
  for (const char* text : {"native", "llvm -mcpu=native", R"({"kind":"llvm","mcpu":"native"})"}) {
    EXPECT_EQ(parse_target(text, host).canonical(), host.canonical()) << text;
  }
  const Target fewer = parse_target("llvm -mcpu=native -num-cores=2 -mattr=-avx2", host);
  EXPECT_EQ(fewer.facts.num_cores, 2);
  EXPECT_EQ(fewer.facts.vector_bits, 128);
  EXPECT_EQ(fewer.features, std::vector<std::string>{"-avx2"});
  EXPECT_THAT(message_of("llvm -mcpu=native -mtriple=aarch64-linux-gnu"),
              HasSubstr("native is x86_64-linux-gnu"));
}

TEST(Target, AttributesAreClosedUnderImplication) {
  const Target off = parse_target("llvm -mcpu=sapphirerapids -mattr=-avx512f", fake_host());
  EXPECT_EQ(off.facts.vector_bits, 256);
  EXPECT_THAT(off.required_features(), Not(Contains("avx512vnni")));
  EXPECT_THAT(off.required_features(), Contains("avx2"));
  const Target on = parse_target("llvm -mcpu=x86-64 -mattr=+avx512vl,+avx512bw,+avx512dq", fake_host());
  EXPECT_EQ(on.facts.vector_bits, 512);
  EXPECT_THAT(on.required_features(), Contains("sse4.2"));
  const Target redundant = parse_target("llvm -mcpu=core-avx2 -mattr=+avx2,-avx512f", fake_host());
  EXPECT_TRUE(redundant.features.empty());
}

TEST(Target, BytesAreLookedUpWhereThereAreInstructions) {
  const auto looks_up = [](std::string_view text) {
    return parse_target(text, fake_host()).facts.byte_lookup;
  };
  EXPECT_TRUE(looks_up("llvm -mcpu=znver4"));
  EXPECT_TRUE(looks_up("llvm -mcpu=cortex-a72"));
  EXPECT_FALSE(looks_up("llvm -mcpu=znver4 -mattr=-avx512vbmi"));
  EXPECT_FALSE(looks_up("llvm -mcpu=skylake-avx512"));
  EXPECT_FALSE(looks_up("llvm -mcpu=haswell"));
}

TEST(Target, JsonFormEqualsTextForm) {
  const Target text = parse_target("llvm -mcpu=znver3 -mattr=-fma,+gfni -num-cores=4", fake_host());
  const Target json =
      parse_target(R"({"kind":"llvm","mcpu":"znver3","mattr":["-fma","+gfni"],"num-cores":4,"keys":["cpu"]})",
                   fake_host());
  EXPECT_EQ(text.canonical(), json.canonical());
  EXPECT_THAT(json.warnings, Contains("target option -keys is ignored"));
  EXPECT_EQ(text.canonical(),
            "llvm -mcpu=znver3 -mattr=+gfni,-fma -mtriple=x86_64-linux-gnu -num-cores=4 -vector-width=256 "
            "-l1d-bytes=32768 -l2-bytes=524288");
}

TEST(Target, TriplesAreNormalizedAndDecideTheArchitecture) {
  const Target arm = parse_target("llvm -mcpu=cortex-a72 -mtriple=aarch64-unknown-linux-gnu", fake_host());
  EXPECT_EQ(arm.triple, "aarch64-linux-gnu");
  EXPECT_FALSE(arm.is_x86());
  EXPECT_EQ(arm.facts.vector_registers, 32);
  EXPECT_TRUE(arm.facts.fma);
  EXPECT_EQ(parse_target("llvm -mcpu=neoverse-n1", fake_host()).triple, "aarch64-linux-gnu");
  EXPECT_EQ(parse_target("llvm", fake_host()).cpu, "x86-64");
  EXPECT_THAT(message_of("llvm -mcpu=haswell -mtriple=aarch64-linux-gnu"),
              HasSubstr("accepted are native, generic"));
}

TEST(Target, ErrorsNameTheOptionAndWhatIsAccepted) {
  EXPECT_THAT(message_of("llvm -mcpu=pentium5"),
              HasSubstr("-mcpu: unknown cpu \"pentium5\", accepted are native"));
  EXPECT_THAT(message_of("llvm -mattr=+avx9"), HasSubstr("-mattr: unknown feature \"avx9\" of x86_64"));
  EXPECT_THAT(message_of("llvm -mattr=avx2"), HasSubstr("expected +feature or -feature, got \"avx2\""));
  EXPECT_THAT(message_of("llvm -num-cores=0"), HasSubstr("-num-cores: expected an integer from 1 to 1024"));
  EXPECT_THAT(message_of("llvm -num-cores=two"), HasSubstr("got \"two\""));
  EXPECT_THAT(message_of("llvm -mtriple=mips-linux-gnu"), HasSubstr("accepted are x86_64-linux-gnu"));
  EXPECT_THAT(message_of("llvm -fast-math=1"),
              HasSubstr("unknown option \"-fast-math\", accepted are -mcpu"));
  EXPECT_THAT(message_of("llvm -mcpu=haswell -mcpu=haswell"), HasSubstr("given twice"));
  EXPECT_THAT(message_of("llvm -mcpu"), HasSubstr("needs a value"));
  EXPECT_THAT(message_of("llvm -mcpu=haswell -vector-width=512"), HasSubstr("more than the cpu's 256"));
  EXPECT_THAT(message_of(""), HasSubstr("the text is empty"));
  EXPECT_THAT(message_of("gcc"), HasSubstr("unknown kind \"gcc\", accepted are llvm and native"));
  EXPECT_THAT(message_of("cuda", ErrorCode::kNotSupported), HasSubstr("\"cuda\" is not supported"));
  EXPECT_THAT(message_of("{\"kind\":3}"), HasSubstr("expected a string"));
  EXPECT_THAT(message_of("{\"mcpu\":\"native\"}"), HasSubstr("\"kind\" is missing"));
  EXPECT_THAT(message_of("{\"kind\":\"llvm\","), HasSubstr("target: "));
}

TEST(Target, HostIsKnownAndRoundTrips) {
  const Target host = host_target();
  EXPECT_GE(host.facts.num_cores, 1);
  EXPECT_GE(host.facts.l1d_bytes, 8 * 1024);
  EXPECT_GE(host.facts.l2_bytes, host.facts.l1d_bytes);
  EXPECT_EQ(parse_target("native", host).canonical(), host.canonical());
  EXPECT_EQ(parse_target(host.canonical(), fake_host()).canonical(), host.canonical());
}

}  // namespace
}  // namespace tensormill::target
