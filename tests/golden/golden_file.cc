#include "tests/golden/golden_file.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string_view>

#include "runtime/base/error.h"
#include "runtime/base/file.h"

namespace tensormill::golden {
namespace {

constexpr std::string_view kBefore = "---- before\n";
constexpr std::string_view kAfter = "---- after\n";

bool& update_flag() {
  static bool updating = false;
  return updating;
}

}  // namespace

GoldenFile read_golden(const std::string& path) {
  const std::string text = read_file(path);
  const size_t before = text.find(kBefore), after = text.find(kAfter);
  if (before == std::string::npos || after == std::string::npos || after < before) {
    throw Error(ErrorCode::kInvalidArgument, path + ": expected the lines ---- before and ---- after");
  }
  GoldenFile file;
  file.path = path;
  file.head = text.substr(0, before);
  file.before = text.substr(before + kBefore.size(), after - before - kBefore.size());
  file.after = text.substr(after + kAfter.size());
  std::istringstream lines(file.head);
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(": ");
    if (line.empty() || line[0] == '#' || colon == std::string::npos) continue;
    file.settings[line.substr(0, colon)] = line.substr(colon + 2);
  }
  return file;
}

void write_golden(const GoldenFile& file, const std::string& after) {
  write_file(file.path, file.head + std::string(kBefore) + file.before + std::string(kAfter) + after);
}

std::vector<std::string> golden_files(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(TM_SOURCE_DIR "/tests/golden/" + folder)) {
    if (entry.path().extension() == ".txt") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

bool is_updating() { return update_flag(); }

void expect_golden(const GoldenFile& file, const std::string& actual) {
  if (is_updating()) {
    if (actual != file.after) write_golden(file, actual);
    return;
  }
  EXPECT_EQ(actual, file.after) << "in " << file.path << "; golden_tests --update writes what is right now";
}

}  // namespace tensormill::golden

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--update") tensormill::golden::update_flag() = true;
  }
  return RUN_ALL_TESTS();
}
