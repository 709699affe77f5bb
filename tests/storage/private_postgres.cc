#include "tests/storage/private_postgres.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <utility>

#include "runtime/base/file.h"
#include "runtime/base/json.h"

namespace tensormill::storage {
namespace {

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw_errno(errno, "cannot make a pipe");
    read = FileDescriptor(ends[0]);
    write = FileDescriptor(ends[1]);
  }
  FileDescriptor read;
  FileDescriptor write;
};

/// What the script says first. It stops when its input ends.
class PrivatePostgres {
public:
  PrivatePostgres() {
    Pipe output;
    start(output);
    output.write = FileDescriptor();
    std::string line;
    for (char next = 0; ::read(output.read.get(), &next, 1) == 1 && next != '\n';) line += next;
    if (line.empty())
      throw InternalError("there is no PostgreSQL to test with: install the package postgresql");
    url_ = Json::parse(line).at("url").get<std::string>();
  }
  ~PrivatePostgres() {
    input_.write = FileDescriptor();
    ::waitpid(process_, nullptr, 0);
  }
  PrivatePostgres(const PrivatePostgres&) = delete;
  PrivatePostgres& operator=(const PrivatePostgres&) = delete;
  const std::string& url() const { return url_; }

private:
  void start(const Pipe& output) {
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, input_.read.get(), STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, output.write.get(), STDOUT_FILENO);
    std::string program = "python3";
    std::string script = TM_SOURCE_DIR "/tests/tools/postgres_server.py";
    std::array<char*, 3> arguments = {program.data(), script.data(), nullptr};
    const int failed =
        ::posix_spawnp(&process_, program.c_str(), &actions, nullptr, arguments.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    if (failed != 0) throw_errno(failed, "cannot start python3");
  }

  Pipe input_;
  pid_t process_ = -1;
  std::string url_;
};

const std::string& server_url() {
  static const PrivatePostgres server;
  return server.url();
}

}  // namespace

PgOptions postgres_options(const std::string& url, std::function<int64_t()> now_ms) {
  PgOptions options;
  options.url = url;
  options.now_ms = std::move(now_ms);
  return options;
}

std::string fresh_postgres_schema() {
  static std::atomic<int> made{0};
  const std::string name = "t" + std::to_string(++made);
  PgConnection(postgres_options(server_url())).script("CREATE SCHEMA " + name);
  return server_url() + "&options=-csearch_path%3D" + name;
}

}  // namespace tensormill::storage
