#include "compiler/package/writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <functional>

#include "runtime/base/error.h"
#include "runtime/base/file.h"

namespace tensormill::package {

namespace {

using Sink = std::function<void(std::string_view)>;

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

constexpr int64_t kBlock = 512;

int64_t padding_of(int64_t size) { return (kBlock - size % kBlock) % kBlock; }

template <size_t kSize>
void put_octal(std::array<char, kBlock>& header, size_t offset, const std::array<char, kSize>&,
               uint64_t value) {
  // kSize - 1 digits and a NUL.
  for (size_t i = 0; i + 1 < kSize; ++i) {
    header[offset + kSize - 2 - i] = static_cast<char>('0' + (value & 7));
    value >>= 3;
  }
}

std::string header_of(std::string_view name, int64_t size, char type = '0') {
  std::array<char, kBlock> header{};
  std::copy(name.begin(), name.end(), header.begin());
  put_octal(header, 100, std::array<char, 8>{}, 0644);
  put_octal(header, 108, std::array<char, 8>{}, 0);
  put_octal(header, 116, std::array<char, 8>{}, 0);
  put_octal(header, 124, std::array<char, 12>{}, static_cast<uint64_t>(size));
  put_octal(header, 136, std::array<char, 12>{}, 0);
  std::fill_n(header.begin() + 148, 8, ' ');
  header[156] = type;
  const std::string_view magic(
      "ustar\0"
      "00",
      8);
  std::copy(magic.begin(), magic.end(), header.begin() + 257);
  uint64_t sum = 0;
  for (char c : header) sum += static_cast<unsigned char>(c);
  put_octal(header, 148, std::array<char, 7>{}, sum);
  header[154] = '\0';
  return std::string(header.data(), header.size());
}

void put_member(const Sink& sink, std::string_view name, std::string_view bytes) {
  sink(header_of(name, static_cast<int64_t>(bytes.size())));
  sink(bytes);
  put_zeros(sink, padding_of(static_cast<int64_t>(bytes.size())));
}

/// A pax extended header with nothing but a comment, which every tar program skips, moves the data of the
/// next member to a page boundary.
void put_alignment(const Sink& sink, int64_t at) {
  int64_t size = kParamsAlignment - (at + 2 * kBlock) % kParamsAlignment;
  std::string record = std::to_string(size) + " comment=";
  record.resize(static_cast<size_t>(size) - 1, ' ');
  record += '\n';
  sink(header_of("align", size, 'x'));
  sink(record);
}

}  // namespace

MemberInfo params_member(const std::vector<plan::ParamSegment>& segments, int64_t total_bytes) {
  Hasher hasher;
  put_params([&](std::string_view bytes) { hasher.update(bytes); }, segments, total_bytes);
  return {hasher.finish(), total_bytes};
}

void write_params(int fd, const std::vector<plan::ParamSegment>& segments, int64_t total_bytes,
                  std::string_view name) {
  put_params([&](std::string_view bytes) { write_all(fd, bytes, name); }, segments, total_bytes);
}

void write_archive(const std::string& path, const ArchiveMembers& members) {
  const std::string temporary = path + ".tmp." + std::to_string(::getpid());
  FileDescriptor fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd.valid()) throw_errno(errno, "cannot create " + temporary);
  try {
    int64_t at = 0;
    const Sink sink = [&](std::string_view bytes) {
      write_all(fd.get(), bytes, temporary);
      at += static_cast<int64_t>(bytes.size());
    };
    put_member(sink, kMetadataMember, members.metadata_json);
    put_member(sink, kPlanMember, members.plan_json);
    put_member(sink, kCodeMember, members.code);
    put_alignment(sink, at);
    sink(header_of(kParamsMember, members.params_bytes));
    put_params(sink, *members.params, members.params_bytes);
    put_zeros(sink, padding_of(members.params_bytes) + 2 * kBlock);
    if (::rename(temporary.c_str(), path.c_str()) != 0) throw_errno(errno, "cannot rename to " + path);
  } catch (const Error&) {
    ::unlink(temporary.c_str());
    throw;
  }
}

}  // namespace tensormill::package
