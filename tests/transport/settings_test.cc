// config/settings: precedence, types, unknown names.
#include "config/settings.h"

#include <gtest/gtest.h>

#include "runtime/base/error.h"

namespace tensormill::config {
namespace {

std::string message_of(const SettingSources& sources) {
  try {
    load_settings(sources);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    return error.message();
  }
  return "";
}

TEST(Settings, HaveDefaults) {
  const Settings settings = load_settings({});
  EXPECT_EQ(settings.listen, "127.0.0.1:8080");
  EXPECT_EQ(settings.max_header_bytes, 16384u);
  EXPECT_EQ(settings.header_timeout, std::chrono::seconds(10));
  EXPECT_EQ(settings.max_model_bytes, uint64_t{16} << 30);
  EXPECT_TRUE(settings.allowed_hosts.empty());
}

TEST(Settings, EveryDefaultReadsBack) {
  Settings settings;
  for (const SettingInfo& row : all_settings()) {
    const std::string printed = settings.get(row.name);
    settings.set(row.name, printed, "test");
    EXPECT_EQ(settings.get(row.name), printed) << row.name;
  }
}

TEST(Settings, FlagsBeatEnvironmentBeatsFile) {
  SettingSources sources;
  sources.file_name = "tensormill.toml";
  sources.file_text = "# comment\nlisten = \"127.0.0.1:1\"\nhttp.workers = 3 # three\n\njobs.workers=2\n";
  sources.environment = {{"TENSORMILL_LISTEN", "127.0.0.1:2"}, {"TENSORMILL_HTTP_WORKERS", "4"}};
  sources.flags = {{"listen", "127.0.0.1:3"}};
  const Settings settings = load_settings(sources);
  EXPECT_EQ(settings.listen, "127.0.0.1:3");
  EXPECT_EQ(settings.http_workers, 4);
  EXPECT_EQ(settings.job_workers, 2);
}

TEST(Settings, ListsAndUnits) {
  Settings settings;
  settings.set("http.allowed_hosts", "a.example, b.example,", "test");
  EXPECT_EQ(settings.allowed_hosts, (std::vector<std::string>{"a.example", "b.example"}));
  settings.set("limits.json_bytes", "2 MiB", "test");
  EXPECT_EQ(settings.max_json_bytes, uint64_t{2} << 20);
  settings.set("http.body_timeout", "5m", "test");
  EXPECT_EQ(settings.body_timeout, std::chrono::minutes(5));
}

TEST(Settings, UnknownNamesAreUsageErrors) {
  EXPECT_NE(message_of({{{"http.worker", "3"}}, {}, "", ""}).find("http.workers"), std::string::npos);
  EXPECT_NE(message_of({{}, {{"TENSORMILL_LISTENS", "x"}}, "", ""}).find("TENSORMILL_LISTEN"),
            std::string::npos);
  EXPECT_NE(message_of({{}, {}, "f.toml", "\nnonsense = 1\n"}).find("f.toml line 2"), std::string::npos);
}

TEST(Settings, NamesThatAreGoneSayWhy) {
  for (const std::string& said : {message_of({{{"http.transport", "beast"}}, {}, "", ""}),
                                  message_of({{}, {{"TENSORMILL_HTTP_TRANSPORT", "cpprest"}}, "", ""}),
                                  message_of({{}, {}, "f.toml", "http.transport = \"beast\"\n"})}) {
    EXPECT_NE(said.find("is gone: there is one HTTP listener"), std::string::npos) << said;
  }
}

TEST(Settings, WrongValuesAreUsageErrors) {
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, std::string>>{{"http.workers", "many"},
                                                        {"http.workers", "0"},
                                                        {"http.workers", "1 2"},
                                                        {"http.header_timeout", "10"},
                                                        {"limits.json_bytes", "10XiB"},
                                                        {"limits.model_bytes", "99999999999999TiB"},
                                                        {"read_only", "perhaps"}}) {
    const std::string expected = "setting " + name + " is \"" + value + "\", expected ";
    EXPECT_NE(message_of({{{name, value}}, {}, "", ""}).find("command line: " + expected), std::string::npos)
        << value;
    const std::string text = "\n" + name + " = '" + value + "'\n";
    EXPECT_NE(message_of({{}, {}, "f.toml", text}).find("file f.toml line 2: " + expected), std::string::npos)
        << text;
  }
}

TEST(Settings, EnvironmentBlockIsFiltered) {
  const char* block[] = {"PATH=/bin", "TENSORMILL_LISTEN=127.0.0.1:9", nullptr};
  const auto found = tensormill_environment(block);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found.at("TENSORMILL_LISTEN"), "127.0.0.1:9");
}

}  // namespace
}  // namespace tensormill::config
