#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "runtime/base/file.h"
#include "tests/fuzz/targets.h"

namespace tensormill::fuzz {
namespace {

/// Of all files of a target together, so that a larger corpus does not take longer; of each at least 20.
constexpr int kMutations = 800;
constexpr size_t kMaxFileBytes = 16 << 10;

std::vector<std::string> corpus_of(std::string_view target) {
  std::vector<std::string> paths;
  const std::string folder = std::string(TM_SOURCE_DIR) + "/tests/fuzz/corpus/" + std::string(target);
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// A flipped bit, a changed, doubled or removed stretch, or a cut: what a broken file looks like.
std::string mutate(std::string bytes, std::mt19937_64& random) {
  const auto below = [&](size_t limit) { return limit == 0 ? 0 : static_cast<size_t>(random() % limit); };
  for (size_t i = 0; i <= below(4) && !bytes.empty(); ++i) {
    const size_t at = below(bytes.size());
    const size_t length = std::min(bytes.size() - at, 1 + below(8));
    switch (below(5)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 1:
        for (size_t j = 0; j < length; ++j) bytes[at + j] = static_cast<char>(below(256));
        break;
      case 2:
        bytes.insert(at, bytes.substr(at, length));
        break;
      case 3:
        bytes.erase(at, length);
        break;
      default:
        bytes.resize(at);
    }
  }
  return bytes;
}

class CorpusTest : public testing::TestWithParam<TargetRow> {};

TEST_P(CorpusTest, FilesAndTheirMutationsGiveAnErrorOrAValue) {
  const std::vector<std::string> paths = corpus_of(GetParam().name);
  ASSERT_FALSE(paths.empty());
  const int mutations = std::max(20, kMutations / static_cast<int>(paths.size()));
  std::mt19937_64 random(1);
  const auto run = [&](const std::string& bytes, const std::string& what) {
    try {
      attempt([&] { GetParam().run(bytes); });
    } catch (const std::exception& error) {
      ADD_FAILURE() << what << ": " << error.what();
    }
  };
  for (const std::string& path : paths) {
    const std::string bytes = read_file(path);
    EXPECT_LE(bytes.size(), kMaxFileBytes) << path << ": the corpus is kept small";
    run(bytes, path);
    for (int i = 0; i < mutations; ++i) run(mutate(bytes, random), path + ", mutation " + std::to_string(i));
  }
}

TEST_P(CorpusTest, SomeFileIsAccepted) {
  int accepted = 0;
  for (const std::string& path : corpus_of(GetParam().name)) {
    try {
      GetParam().run(read_file(path));
      ++accepted;
    } catch (const Error& error) {
      EXPECT_FALSE(error.message().empty()) << path;
    }
  }
  EXPECT_GT(accepted, 0) << "nothing in the folder gets past the first checks";
}

INSTANTIATE_TEST_SUITE_P(Targets, CorpusTest, testing::ValuesIn(all_targets()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tensormill::fuzz
