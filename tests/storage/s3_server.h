/// A real S3 server (versitygw) on this machine, for as long as the object lives, and a file transport to it.
/// Thread-safety: one thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "storage/s3/s3_blob_store.h"
#include "tests/storage/support.h"

namespace tensormill::storage {

class S3Server {
public:
  S3Server();
  ~S3Server();
  S3Server(const S3Server&) = delete;
  S3Server& operator=(const S3Server&) = delete;

  /// One for the whole test program.
  static S3Server& shared();
  /// Options for a folder of its bucket that no other test has.
  S3StoreOptions options();
  /// Where the server keeps the object, for tests that damage it.
  std::string file_of(const S3StoreOptions& options, const std::string& key) const;
  /// kill -9, and the same server again on the same port.
  void kill();
  void start();

private:
  void wait_until_it_listens() const;
  TemporaryFolder folder_;
  uint16_t port_ = 0;
  pid_t process_ = -1;
  int next_prefix_ = 0;
};

}  // namespace tensormill::storage
