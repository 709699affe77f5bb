/// The whole process behind `tensormill worker`: link, cache, threads. Thread-safety: one thread makes it and
/// waits for it; stop and drain from any.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "config/settings.h"
#include "server/worker/server_link.h"

namespace tensormill::worker {

struct WorkerOptions {
  ServerLinkOptions server;
  std::string name;
  std::vector<std::string> verbs;  ///< of known_verbs()
  std::vector<std::string> labels;
  std::string signing_key;  ///< PEM file of the Ed25519 key that signs packages; "" where nothing is compiled
  std::string data = "tensormill-worker";  ///< folder of cache and attempts; one worker at a time
  uint64_t cache_bytes = uint64_t{16} << 30;
  int slots = 1;                                 ///< jobs side by side that do not measure
  std::function<void(const std::string&)> tell;  ///< one line for whoever looks after the worker
  std::string item;    ///< file of an item that was carried here (server/services/jobs/carried_work.h): it
                       ///< alone is done
  std::string result;  ///< file that what comes of it goes to, signed
};

/// The verbs that a worker knows.
const std::vector<std::string>& known_verbs();

class Worker {
public:
  /// Begins to ask for work. Of `settings` it uses those of jobs, children, imports and runs. `refused` is
  /// called once, from any thread, when the server will have no work of it, or the item that was carried here
  /// has come to its end. Throws Error(kUsage),
  /// Error(kInUse) when another process has the folder.
  Worker(WorkerOptions options, const config::Settings& settings, std::function<void()> refused);
  /// As stop.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Takes no further work; returns when what runs has ended.
  void drain();
  /// What runs is given back to the server. Ends a drain.
  void stop();
  /// Why the server will have no work of it; "" while it will.
  std::string refusal();

private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace tensormill::worker
