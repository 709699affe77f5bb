#include "compiler/package/writer.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/output_file.h"
#include "runtime/package/archive_layout.h"

namespace tensormill::package {

namespace {

using Sink = std::function<void(std::string_view)>;

/// Passes bytes on in pieces that are as large as a large page and lie as one in the file. Systems that keep
/// files in pages as large as the writes then map them so, and a kernel that streams its weights waits for
/// fewer translations of addresses.
class LargePieces {
public:
  explicit LargePieces(Sink sink) : sink_(std::move(sink)) { piece_.reserve(kPageBytes); }
  void put(std::string_view bytes) {
    while (!bytes.empty()) {
      const size_t part = std::min(bytes.size(), kPageBytes - piece_.size());
      piece_.append(bytes.substr(0, part));
      bytes.remove_prefix(part);
      if (piece_.size() == kPageBytes) flush();
    }
  }
  /// What is left; to be called at the end.
  void flush() {
    sink_(piece_);
    piece_.clear();
  }

private:
  static constexpr size_t kPageBytes = size_t{2} << 20;
  Sink sink_;
  std::string piece_;
};

void put_zeros(const Sink& sink, int64_t count) {
  static constexpr std::array<char, 4096> kZeros{};
  while (count > 0) {
    const int64_t part = std::min<int64_t>(count, static_cast<int64_t>(kZeros.size()));
    sink(std::string_view(kZeros.data(), static_cast<size_t>(part)));
    count -= part;
  }
}

void put_params(const Sink& sink, const std::vector<plan::ParamSegment>& segments, int64_t total_bytes) {
  int64_t at = 0;
  for (const plan::ParamSegment& segment : segments) {
    put_zeros(sink, segment.offset - at);
    sink(std::string_view(static_cast<const char*>(segment.tensor.data()), segment.tensor.num_bytes()));
    at = segment.offset + static_cast<int64_t>(segment.tensor.num_bytes());
  }
  TM_CHECK(at <= total_bytes, "constants end behind mod.params");
  put_zeros(sink, total_bytes - at);
}

void put_archive(const Sink& sink, const ArchiveMembers& members) {
  const MemberSizes sizes{static_cast<int64_t>(members.metadata_json.size()),
                          static_cast<int64_t>(members.plan_json.size()),
                          static_cast<int64_t>(members.code.size()), members.params_bytes};
  for (const ArchivePiece& piece : archive_layout(sizes)) {
    if (piece.member == kMetadataMember) {
      sink(members.metadata_json);
    } else if (piece.member == kPlanMember) {
      sink(members.plan_json);
    } else if (piece.member == kCodeMember) {
      sink(members.code);
    } else if (piece.member == kParamsMember) {
      put_params(sink, *members.params, members.params_bytes);
    } else {
      sink(piece.bytes);
    }
  }
}

}  // namespace

MemberInfo params_member(const std::vector<plan::ParamSegment>& segments, int64_t total_bytes) {
  Hasher hasher;
  put_params([&](std::string_view bytes) { hasher.update(bytes); }, segments, total_bytes);
  return {hasher.finish(), total_bytes};
}

void write_params(int fd, const std::vector<plan::ParamSegment>& segments, int64_t total_bytes,
                  std::string_view name) {
  LargePieces pieces([&](std::string_view bytes) { write_all(fd, bytes, name); });
  put_params([&](std::string_view bytes) { pieces.put(bytes); }, segments, total_bytes);
  pieces.flush();
}

namespace {

/// Constants where kernels can read them. A model's file may have them anywhere, and end behind them: those
/// are copied when they are asked for.
class ReadableConstants {
public:
  explicit ReadableConstants(const std::vector<plan::ParamSegment>& segments) {
    for (const plan::ParamSegment& segment : segments) constants_[segment.offset].tensor = segment.tensor;
  }
  const void* at(int64_t offset) {
    Constant& constant = constants_.at(offset);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!constant.is_readable) constant = {plan::as_kernels_read(constant.tensor), true};
    return std::as_const(constant.tensor).data();
  }

private:
  struct Constant {
    Tensor tensor;
    bool is_readable = false;
  };

  std::mutex mutex_;
  std::map<int64_t, Constant> constants_;
};

}  // namespace

std::shared_ptr<const Package> open_written(const ArchiveMembers& members) {
  std::map<std::string, std::shared_ptr<const MappedFile>> files;
  const auto add = [&](std::string_view name, std::string_view text) {
    const std::shared_ptr<void> copy = allocate_aligned(text.size());
    std::copy(text.begin(), text.end(), static_cast<char*>(copy.get()));
    files[std::string(name)] = MappedFile::part_of(
        copy, {static_cast<const std::byte*>(copy.get()), text.size()}, std::string(name));
  };
  add(kMetadataMember, members.metadata_json);
  add(kPlanMember, members.plan_json);
  add(kCodeMember, members.code);
  const auto constants = std::make_shared<ReadableConstants>(*members.params);
  return Package::open_made(files, [constants](int64_t offset) { return constants->at(offset); });
}

std::string archive_bytes(const ArchiveMembers& members) {
  std::string bytes;
  put_archive([&](std::string_view piece) { bytes += piece; }, members);
  return bytes;
}

void write_archive(const std::string& path, const ArchiveMembers& members) {
  OutputFile file(path);
  LargePieces pieces([&](std::string_view bytes) { file.write(bytes); });
  put_archive([&](std::string_view bytes) { pieces.put(bytes); }, members);
  pieces.flush();
  file.commit();
}

}  // namespace tensormill::package
