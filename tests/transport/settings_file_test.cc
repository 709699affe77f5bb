// config/settings_file: what a file of settings may say, and that what it may not is told with file and line.
#include "config/settings_file.h"

#include <gtest/gtest.h>

#include <tuple>

#include "runtime/base/error.h"

namespace tensormill::config {
namespace {

Settings from_file(const std::string& text) {
  SettingSources sources;
  sources.file_name = "f.toml";
  sources.file_text = text;
  return load_settings(sources);
}

std::string refusal(const std::string& text) {
  try {
    from_file(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    return error.message();
  }
  return "";
}

using List = std::vector<std::string>;

TEST(SettingsFile, TablesAndDottedKeysAreNames) {
  for (const std::string text :
       {"http.workers = 3\nhttp.queue = 4", "[http]\nworkers = 3\nqueue = 4",
        "http = {workers = 3, queue = 4}", "\xef\xbb\xbf[http]\r\nworkers = 3\r\nqueue = 4\r\n",
        "[http]\n\"queue\" = 4\nworkers = 0x3\n[jobs]\n", "\"http.workers\" = 3\nhttp.queue = 4"}) {
    const Settings settings = from_file(text);
    EXPECT_EQ(settings.http_workers, 3) << text;
    EXPECT_EQ(settings.http_queue, 4) << text;
  }
}

TEST(SettingsFile, ValuesAreOfTheirKindOrText) {
  const Settings settings = from_file(R"(listen = "h:1" # a comment
read_only = true
models = 'C:\x # y = [z]'
limits.json_bytes = 4096
limits.image_bytes = "256MiB"
http.workers = "7"
http.body_timeout = "5m"
http.allowed_hosts = ["a.example",
                      "b.example"]
http.allowed_origins = "https://a, https://b"
http.trusted_proxies = []
)");
  EXPECT_EQ(settings.listen, "h:1");
  EXPECT_TRUE(settings.read_only);
  EXPECT_EQ(settings.models, R"(C:\x # y = [z])");
  EXPECT_EQ(settings.max_json_bytes, 4096u);
  EXPECT_EQ(settings.max_image_bytes, uint64_t{256} << 20);
  EXPECT_EQ(settings.http_workers, 7);
  EXPECT_EQ(settings.body_timeout, std::chrono::minutes(5));
  EXPECT_EQ(settings.allowed_hosts, (List{"a.example", "b.example"}));
  EXPECT_EQ(settings.allowed_origins, (List{"https://a", "https://b"}));
  EXPECT_TRUE(settings.trusted_proxies.empty());
}

TEST(SettingsFile, EverySettingIsWrittenAsItIsRead) {
  Settings settings;
  settings.set("listen", R"(a "b" \c 'd')", "test");
  settings.set("http.allowed_hosts", "a.example,*.b.example", "test");
  settings.set("read_only", "true", "test");
  std::string text;
  for (const SettingInfo& row : all_settings()) text += settings_file_line(row, settings) + "\n";
  EXPECT_LT(2 * text.size(), kMaxFileBytes);
  const Settings read = from_file(text);
  for (const SettingInfo& row : all_settings())
    EXPECT_EQ(read.get(row.name), settings.get(row.name)) << row.name;
  EXPECT_NE(text.find("\nread_only = true\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\nhttp.workers = 32\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\njobs.timeout = "), std::string::npos) << text;
}

/// For every setting: each type of TOML is taken, or refused with the file, the line and the name.
TEST(SettingsFile, WrongTypesAreRefusedForEverySetting) {
  for (const SettingInfo& row : all_settings()) {
    const std::string name(row.name);
    const bool number = row.kind == SettingKind::kWhole || row.kind == SettingKind::kBytes;
    for (const auto& [value, type, fits] : std::vector<std::tuple<std::string, std::string, bool>>{
             {std::to_string(row.low), "a whole number", number},
             {"true", "a truth value", row.kind == SettingKind::kFlag},
             {"1.5", "a number with a fraction", false},
             {"1979-05-27", "a date or a time of day", false},
             {"{a = 1}", "a table", false},
             {"[\"a\"]", "an array", row.kind == SettingKind::kList}}) {
      const std::string said = refusal("\n" + name + " = " + value);
      const std::string expected = "file f.toml line 2: setting " + name + " is " + type + ", expected ";
      EXPECT_EQ(said.substr(0, expected.size()), fits ? "" : expected)
          << name << " = " << value << ": " << said;
    }
  }
}

TEST(SettingsFile, WrongMembersOfListsAreRefused) {
  for (const auto& [members, said] :
       std::vector<std::pair<std::string, std::string>>{{"[1]", "has a member that is a whole number"},
                                                        {"[['a']]", "has a member that is an array"},
                                                        {"['a', ' ']", "has an empty member"},
                                                        {"['a,b']", "with a comma"},
                                                        {"[\"a\\u0000b\"]", "has a control character"}}) {
    const std::string found = refusal("packages.trusted_keys = " + members);
    EXPECT_NE(found.find(said), std::string::npos) << found;
    EXPECT_EQ(found.find("file f.toml line 1: setting packages.trusted_keys has "), 0u) << found;
  }
  EXPECT_EQ(refusal("data = \"a\\u0000b\""), "file f.toml line 1: setting data has a control character");
}

TEST(SettingsFile, TheFirstWrongLineIsTold) {
  EXPECT_EQ(refusal("listen = 1\nhttp.workers = 0\nnonsense = 1").find("file f.toml line 1: "), 0u);
  EXPECT_EQ(refusal("run.threads = 1\nhttp.workers = 0\naudit_log = 1").find("file f.toml line 2: "), 0u);
}

TEST(SettingsFile, UnknownNamesAreRefusedWithTheirTables) {
  for (const auto& [text, name] : std::vector<std::pair<std::string, std::string>>{
           {"\n[http]\nworker = 1", "\"http.worker\" of the file f.toml line 3"},
           {"[htpp]", "\"htpp\" of the file f.toml line 1"},
           {"[htpp]\nworkers = 1", "\"htpp\" of the file f.toml line 1"},
           {"[http.more]\nworkers = 1", "\"http.more\" of the file f.toml line 1"},
           {"[[http]]\nworkers = 1", "\"http\" of the file f.toml line 1"},
           {"http = 1", "\"http\" of the file f.toml line 1"},
           {"\"\" = 1", "\"\" of the file f.toml line 1"}}) {
    EXPECT_NE(refusal(text).find("setting " + name + " is not known; the nearest is "), std::string::npos)
        << refusal(text);
  }
}

TEST(SettingsFile, TwiceIsRefused) {
  for (const std::string text :
       {"http.workers = 1\nhttp.workers = 2", "[http]\nworkers = 1\n\"workers\" = 1",
        "http.workers = 1\n\"http.workers\" = 2", "http.workers = 1\n[http]\nqueue = 2"}) {
    const std::string said = refusal(text);
    EXPECT_EQ(said.find("file f.toml line "), 0u) << said;
    EXPECT_TRUE(said.find("twice") != std::string::npos || said.find("redefine") != std::string::npos)
        << said;
  }
}

TEST(SettingsFile, WhatIsNoTomlIsRefusedWithItsLine) {
  for (const std::string text : {"listen = 127.0.0.1:1", "data = folder", "listen", "= 1", "listen = \"a",
                                 "[http", "listen = \"a\" \"b\"", "listen = \"\xff\"",
                                 "http.allowed_hosts = [\"a\"", "data = 'a'\n\nlisten = \"\\q\""}) {
    const std::string said = refusal("\n" + text);
    EXPECT_EQ(said.find("file f.toml line "), 0u) << text << ": " << said;
    EXPECT_NE(said.find(" is not TOML, in which text is in quotes"), std::string::npos)
        << text << ": " << said;
  }
  EXPECT_EQ(refusal("\nlisten = 127.0.0.1:1").find("file f.toml line 2 column "), 0u);
}

TEST(SettingsFile, LargeAndDeepFilesAreRefused) {
  const auto repeated = [](const std::string& part) {
    std::string text;
    while (text.size() + part.size() + 8 < kMaxFileBytes) text += part;
    return text;
  };
  for (const std::string& text :
       {repeated("a.") + "a = 1", "[" + repeated("a.") + "a]", "a = " + repeated("["), repeated("a={"),
        repeated("[a]\n"), repeated("[[a]]\n"), "http." + repeated("a.") + "a = 1", "x = " + repeated("1"),
        repeated("a") + " = 1", repeated("a = [{") + "a = 1"}) {
    EXPECT_NE(refusal(text).find("file f.toml line "), std::string::npos) << text.substr(0, 20);
  }
  EXPECT_EQ(refusal("#" + std::string(kMaxFileBytes - 1, 'x')), "");
  EXPECT_NE(refusal("#" + std::string(kMaxFileBytes, 'x')).find("file f.toml has more than 16384 bytes"),
            std::string::npos);
}

}  // namespace
}  // namespace tensormill::config
