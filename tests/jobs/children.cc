#include "tests/jobs/children.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "server/jobs/child_main.h"
#include "server/jobs/child_process.h"
#include "storage/blob/folder_blob_store.h"
#include "storage/catalog/sqlite_catalog.h"
#include "storage/env/posix_env.h"

namespace tensormill::jobs {
namespace {

using Arguments = std::span<const std::string>;

std::string echo(ChildChannel&, Arguments arguments) {
  std::string input(64, '\0');
  const ssize_t got = ::pread(kFirstInheritedFd, input.data(), input.size(), 0);
  input.resize(got < 0 ? 0 : static_cast<size_t>(got));
  int open_descriptors = 0;
  for (int fd = 0; fd < 128; ++fd) open_descriptors += ::fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
  const Json result = {{"arguments", std::vector<std::string>(arguments.begin(), arguments.end())},
                       {"input", input},
                       {"descriptors", open_descriptors},
                       {"group", ::getpgrp() == ::getpid()},
                       {"variables", ::getenv("PATH") == nullptr}};
  ::dprintf(1, "to the log\n");
  return result.dump();
}

std::string report(ChildChannel& channel, Arguments arguments) {
  const int count = std::stoi(arguments[0]);
  for (int i = 1; i <= count; ++i) {
    channel.progress(Json{{"stage", "passes"}, {"done", i}, {"total", count}}.dump());
  }
  return "{}";
}

std::string priority(ChildChannel&, Arguments) { return std::to_string(::getpriority(PRIO_PROCESS, 0)); }

/// A parent that runs below what it asks for its child, and may not raise anybody; the child's priority.
std::string low_parent(ChildChannel&, Arguments arguments) {
  const rlimit none{0, 0};
  if (::setrlimit(RLIMIT_NICE, &none) != 0 || ::prctl(PR_CAPBSET_DROP, CAP_SYS_NICE) != 0) {
    // Without the privilege to drop it there is none to raise with.
    TM_CHECK(errno == EPERM, "capabilities cannot be dropped");
  }
  if (::setpriority(PRIO_PROCESS, 0, std::stoi(arguments[0])) != 0) throw_errno(errno, "setpriority");
  ChildSpec spec;
  spec.command = "child-priority";
  spec.limits.confine = false;
  spec.limits.nice = std::stoi(arguments[1]);
  ChildProcess child(spec);
  while (true) {
    const auto outcome = child.poll(std::chrono::seconds(60), [](const std::string&, const std::string&) {});
    if (!outcome) continue;
    if (outcome->error) throw Error(*outcome->error);
    return outcome->result;
  }
}

[[noreturn]] void wait_for_ever() {
  while (true) ::poll(nullptr, 0, -1);
}

std::string hang(ChildChannel& channel, Arguments) {
  channel.event("log", "\"hanging\"");
  wait_for_ever();
}

std::string spin(ChildChannel&, Arguments) {
  volatile uint64_t counter = 0;
  while (true) counter = counter + 1;
}

std::string eat_memory(ChildChannel&, Arguments) {
  std::vector<std::unique_ptr<char[]>> blocks;
  while (true) blocks.push_back(std::make_unique<char[]>(size_t{16} << 20));
}

std::string user_error(ChildChannel&, Arguments) {
  Error error(ErrorCode::kOperatorNotImplemented, "2 operators are not implemented", {{"/node/0", "Foo"}});
  error.set_extra_json("{\"inputs\":[]}");
  throw error;
}

std::string internal_error(ChildChannel&, Arguments) {
  TM_CHECK(false, "on purpose");
  return "{}";
}

std::string crash(ChildChannel&, Arguments) { std::abort(); }

std::string bad_line(ChildChannel&, Arguments) {
  ::dprintf(kChannelFd, "this is no JSON\n");
  wait_for_ever();
}

std::string no_result(ChildChannel&, Arguments) { ::_exit(0); }

std::string flood(ChildChannel& channel, Arguments) {
  while (true) channel.event("log", "\"" + std::string(1000, 'x') + "\"");
}

/// Leaves a process behind that holds the first inherited descriptor open.
std::string leave_orphan(ChildChannel& channel, Arguments) {
  if (::fork() == 0) wait_for_ever();
  return hang(channel, {});
}

/// A parent that dies while its own child, which holds the first inherited descriptor, hangs.
std::string dying_parent(ChildChannel&, Arguments) {
  ChildSpec spec;
  spec.command = "child-hang";
  spec.descriptors = {kFirstInheritedFd};
  ChildProcess child(spec);
  bool hanging = false;
  while (!hanging) {
    child.poll(std::chrono::seconds(60),
               [&](const std::string& type, const std::string&) { hanging = hanging || type == "log"; });
  }
  std::abort();
}

/// What the walls answer: 0 or the errno. arguments[0]: a file outside, of this user, that must stay as it
/// is.
std::string try_walls(ChildChannel&, Arguments arguments) {
  const auto result = [](auto value) { return value < 0 ? errno : 0; };
  Json json;
  json["socket"] = result(::socket(AF_INET, SOCK_STREAM, 0));
  char* const argv[] = {nullptr};
  json["exec"] = result(::execve("/bin/true", argv, argv));
  json["kill"] = result(::kill(::getppid(), 0));
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(0);
  json["fork"] = result(pid);
  json["setsid"] = result(::setsid());
  json["outside"] = result(::open("/etc/passwd", O_RDONLY | O_CLOEXEC));
  json["inside"] = result(::open("file", O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  const char* const mine = arguments.empty() ? "/nowhere" : arguments[0].c_str();
  json["truncate"] = result(::truncate(mine, 0));
  json["chmod"] = result(::chmod(mine, 0777));
  json["setxattr"] = result(::setxattr(mine, "user.x", "x", 1, 0));
  json["unlink"] = result(::unlink(mine));
  json["rename"] = result(::rename(mine, "here"));
  json["link"] = result(::link(mine, "here"));
  bool ran = false;
  std::thread([&ran] { ran = true; }).join();
  json["thread"] = ran ? 0 : 1;
  return json.dump();
}

/// Uploads and publishes for ever in the store at arguments[0], and says so after each.
std::string publish_for_ever(ChildChannel& channel, Arguments arguments) {
  storage::PosixEnv env;
  storage::SqliteCatalog catalog(env, arguments[0] + "/catalog.db");
  storage::FolderBlobStore blobs(env, arguments[0]);
  const int round = std::stoi(arguments[1]);
  for (int i = 0;; ++i) {
    const std::string bytes = std::to_string(round) + "." + std::to_string(i) + std::string(100'000, 'x');
    const Digest id = blobs.put(bytes);
    catalog.put_model({id, {id}, "{}"}, std::nullopt);
    channel.event("published", "\"" + id.text() + "\"");
  }
}

}  // namespace

void run_test_child(const std::string& command, int argc, char** argv) {
  const std::map<std::string, ChildBody> bodies = {
      {"child-echo", echo},
      {"child-report", report},
      {"child-hang", hang},
      {"child-spin", spin},
      {"child-memory", eat_memory},
      {"child-user-error", user_error},
      {"child-internal-error", internal_error},
      {"child-crash", crash},
      {"child-bad-line", bad_line},
      {"child-no-result", no_result},
      {"child-flood", flood},
      {"child-orphan", leave_orphan},
      {"child-dying-parent", dying_parent},
      {"child-walls", try_walls},
      {"child-publish", publish_for_ever},
      {"child-priority", priority},
      {"child-low-parent", low_parent},
  };
  run_wall_child(command, argc, argv);
  const auto body = bodies.find(command);
  if (body != bodies.end()) run_child(argc, argv, body->second);
  // As a child this would run all tests, whose children would do so again.
  if (!command.starts_with("--")) {
    ::dprintf(2, "no child is called %s\n", command.c_str());
    ::_exit(2);
  }
}

}  // namespace tensormill::jobs
