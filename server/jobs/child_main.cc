#include "server/jobs/child_main.h"

#include <unistd.h>

#include <cerrno>
#include <new>
#include <thread>

#include "runtime/base/error.h"
#include "runtime/base/error_json.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"

namespace tensormill::jobs {
namespace {

constexpr std::string_view kOutOfMemoryLine =
    "{\"data\":{\"code\":\"memory_budget\",\"message\":\"out of memory\"},\"type\":\"error\"}\n";

/// No allocation happens here: there is nothing left to allocate.
[[noreturn]] void out_of_memory() {
  const ssize_t ignored = ::write(kChannelFd, kOutOfMemoryLine.data(), kOutOfMemoryLine.size());
  (void)ignored;
  ::_exit(kExitOutOfMemory);
}

/// Ends the process when the parent closes its end of the life line, on purpose or by dying.
void watch_parent() {
  char byte = 0;
  ssize_t got = 0;
  do {
    got = ::read(kLifeLineFd, &byte, 1);
  } while (got > 0 || (got < 0 && errno == EINTR));
  ::_exit(kExitParentGone);
}

}  // namespace

void ChildChannel::event(std::string_view type, std::string_view json) {
  std::string line = "{\"data\":";
  line += json;
  line += ",\"type\":\"";
  line += type;
  line += "\"}\n";
  const std::lock_guard lock(mutex_);
  write_all(fd_, line, "the channel to the parent");
}

int run_child(int argc, char** argv, const ChildBody& body, const std::function<void()>& prepare) {
  std::set_new_handler(out_of_memory);
  ChildChannel channel(kChannelFd);
  int code = kExitInternalError;
  try {
    TM_CHECK(argc >= 3, "a child needs its limits");
    const std::vector<std::string> arguments(argv + 3, argv + argc);
    if (prepare) prepare();
    // Landlock binds only threads that are made later, so nobody stands outside.
    const Confinement confinement = confine(limits_from_text(argv[2]));
    std::thread(watch_parent).detach();
    channel.event("confined", "\"" + to_text(confinement) + "\"");
    channel.event("result", body(channel, arguments));
    code = kExitOk;
  } catch (const Error& error) {
    channel.event("error", error_to_json(error));
    code = kExitUserError;
  } catch (const std::bad_alloc&) {
    out_of_memory();
  } catch (const std::exception& error) {
    channel.event("error", error_to_json(Error(ErrorCode::kInternal, error.what())));
    code = kExitInternalError;
  }
  ::_exit(code);
}

}  // namespace tensormill::jobs
