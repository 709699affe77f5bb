/// The members of a zip as formats of models use it: found by name, stored ones as views of the file,
/// deflated ones inflated within limits, each with its checksum. runtime/npz reads the directory and
/// inflates. Thread-safety: a file belongs to one thread; its views live as long as the bytes and the file.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/npz/zip.h"

namespace tensormill::frontend::wire {

struct ZipLimits {
  int64_t members = 20'000;
  /// Of everything that is inflated.
  uint64_t inflated_bytes = uint64_t{1} << 30;
};

class ZipFile {
public:
  /// Borrows the bytes. Throws Error(kInvalidModel) for what is no whole, plain, unencrypted zip, for a name
  /// that stands twice, and for more members than allowed.
  explicit ZipFile(std::string_view bytes, const ZipLimits& limits = {});

  const std::vector<npz::ZipMember>& members() const { return members_; }
  bool has(const std::string& name) const { return by_name_.contains(name); }
  /// The member's bytes, checked. Throws Error(kInvalidModel) naming the member: absent, broken, or more than
  /// may be inflated.
  std::string_view read(const std::string& name);

private:
  std::string inflate(const npz::ZipMember& member);

  ZipLimits limits_;
  uint64_t left_;
  std::vector<npz::ZipMember> members_;
  std::map<std::string, size_t> by_name_;
  std::map<std::string, std::unique_ptr<const std::string>> inflated_;
  std::map<std::string, std::string_view> checked_;
};

/// Whether a zip may begin here, or end here behind something else: by its marks alone.
bool begins_as_zip(std::string_view bytes);
bool ends_as_zip(std::string_view bytes);

}  // namespace tensormill::frontend::wire
