/// Requests to one bucket of an S3-compatible store: signed, tried again with growing, random pauses where
/// that may help, and only as often as the options say. Errors: Error(kUnavailable) where the store does not
/// answer, answers 5xx to the end, or refuses the key; Error(kDiskFull) where it is full; Error(kUsage) for a
/// bucket that does not exist. Thread-safety: all methods from many threads.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/s3/credentials.h"
#include "storage/s3/http_transport.h"
#include "storage/s3/sigv4.h"

namespace tensormill::storage {

struct S3Retries {
  int attempts = 8;  ///< of one request, with the first
  std::chrono::milliseconds first_pause{50};
  std::chrono::milliseconds longest_pause{5'000};
  /// Waits; tests have one that does not.
  std::function<void(std::chrono::milliseconds)> pause;
};

struct S3Options {
  std::string endpoint;  ///< "https://s3.example.com:9000", without a path
  std::string region = "us-east-1";
  std::string bucket;
  std::string prefix;      ///< "" or "a/b/": keys begin with it
  bool path_style = true;  ///< endpoint/bucket/key; else bucket.endpoint/key
  std::string ca_file;     ///< PEM; "": the system's
  std::chrono::milliseconds stall_timeout{20'000};
  S3Retries retries;
  uint64_t part_bytes = uint64_t{8} << 20;     ///< of the first thousand parts of an upload; at least 5 MiB
  uint64_t copy_bytes = uint64_t{5} << 30;     ///< larger objects are copied in parts of this size
  std::chrono::seconds staging_grace{86'400};  ///< what is older of unfinished uploads is nobody's any more
  std::function<int64_t()> unix_seconds;
};

/// Whether an object of this key may be there already.
enum class S3Condition { kAlways, kIfAbsent };

struct S3Object {
  std::string key;  ///< without the prefix
  uint64_t bytes = 0;
  int64_t modified = 0;  ///< seconds since 1970
  std::string upload;    ///< of an upload that was not completed
};

class S3Client {
public:
  /// Borrows both. Throws Error(kUsage) for options that cannot be, such as http to another machine.
  S3Client(S3Options options, HttpTransport& transport, CredentialSource& credentials);

  const S3Options& options() const { return options_; }

  /// False where the condition does not hold: nothing was changed then.
  bool put(const std::string& key, std::string_view bytes, S3Condition condition);
  /// Nothing where there is no such object. A cut-off answer is taken up where it ended. `take` gets each
  /// byte with its place; what it throws ends the call, after a restart from 0 places come again.
  std::optional<uint64_t> get(const std::string& key,
                              const std::function<void(uint64_t offset, std::string_view bytes)>& take);
  std::optional<S3Object> head(const std::string& key);
  /// Those that are not there are no fault.
  void remove(const std::vector<std::string>& keys);
  /// In order of keys that begin with `folder`.
  void list(const std::string& folder, const std::function<void(const S3Object&)>& take);

  std::string begin_upload(const std::string& key);
  /// Returns the part's tag. `part` counts from 1.
  std::string put_part(const std::string& key, const std::string& upload, int part, std::string_view bytes);
  bool complete_upload(const std::string& key, const std::string& upload,
                       const std::vector<std::string>& tags, S3Condition condition);
  void abort_upload(const std::string& key, const std::string& upload);
  void list_uploads(const std::string& folder, const std::function<void(const S3Object&)>& take);
  /// False where the condition does not hold.
  bool copy(const std::string& from, const std::string& to, uint64_t bytes, S3Condition condition);

private:
  struct Request {
    std::string method;
    std::string key;  ///< with the prefix; "": the bucket itself
    TextPairs query;
    TextPairs headers;
    std::string_view body;
    /// What the store moves before it answers: it may be silent so much longer.
    uint64_t moved_bytes = 0;
  };
  /// With retries. What is no success and none of `accepted` is thrown.
  HttpAnswer exchange(const Request& request, std::span<const int> accepted);
  HttpAnswer attempt(const Request& request, bool refused, const HttpSink& sink);
  void pause(int tries);
  std::string host() const;
  std::string full(const std::string& key) const { return options_.prefix + key; }
  bool copy_parts(const std::string& from, const std::string& to, uint64_t bytes, S3Condition condition);
  /// Completes or copies. 200, or one of 404, 412 and 501; an error in the body of a 200 is tried again.
  int finish(const Request& request);

  const S3Options options_;
  HttpTransport& transport_;
  CredentialSource& credentials_;
  std::mutex mutex_;
  std::minstd_rand random_;
};

}  // namespace tensormill::storage
