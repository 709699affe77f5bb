#include "runtime/package/archive_layout.h"

#include <algorithm>
#include <array>

#include "runtime/base/error.h"
#include "runtime/package/metadata.h"

namespace tensormill::package {

namespace {

constexpr int64_t kBlock = 512;

int64_t padding_of(int64_t size) { return (kBlock - size % kBlock) % kBlock; }

/// `digits` octal digits and a NUL.
void put_octal(std::string& header, size_t offset, size_t digits, uint64_t value) {
  for (size_t i = 0; i < digits; ++i) {
    header[offset + digits - 1 - i] = static_cast<char>('0' + (value & 7));
    value >>= 3;
  }
  header[offset + digits] = '\0';
}

std::string header_of(std::string_view name, int64_t size, char type = '0') {
  std::string header(kBlock, '\0');
  std::copy(name.begin(), name.end(), header.begin());
  put_octal(header, 100, 7, 0644);
  put_octal(header, 108, 7, 0);
  put_octal(header, 116, 7, 0);
  put_octal(header, 124, 11, static_cast<uint64_t>(size));
  put_octal(header, 136, 11, 0);
  std::fill_n(header.begin() + 148, 8, ' ');
  header[156] = type;
  const std::string_view magic(
      "ustar\0"
      "00",
      8);
  std::copy(magic.begin(), magic.end(), header.begin() + 257);
  uint64_t sum = 0;
  for (char c : header) sum += static_cast<unsigned char>(c);
  put_octal(header, 148, 6, sum);
  return header;
}

class Layout {
public:
  void add(std::string bytes) {
    at_ += static_cast<int64_t>(bytes.size());
    if (!pieces_.empty() && pieces_.back().member.empty()) {
      pieces_.back().bytes += bytes;
      pieces_.back().size = static_cast<int64_t>(pieces_.back().bytes.size());
      return;
    }
    const auto size = static_cast<int64_t>(bytes.size());
    pieces_.push_back({std::move(bytes), {}, size});
  }
  void add_member(std::string_view name, int64_t size) {
    add(header_of(name, size));
    pieces_.push_back({{}, name, size});
    at_ += size;
    add(std::string(static_cast<size_t>(padding_of(size)), '\0'));
  }
  /// A pax extended header with nothing but a comment, which every tar program skips, moves the data of the
  /// next member to a page boundary.
  void add_alignment() {
    const int64_t size = kParamsAlignment - (at_ + 2 * kBlock) % kParamsAlignment;
    std::string record = std::to_string(size) + " comment=";
    record.resize(static_cast<size_t>(size) - 1, ' ');
    record += '\n';
    add(header_of("align", size, 'x'));
    add(std::move(record));
  }
  std::vector<ArchivePiece> take() { return std::move(pieces_); }

private:
  std::vector<ArchivePiece> pieces_;
  int64_t at_ = 0;
};

}  // namespace

std::vector<ArchivePiece> archive_layout(const MemberSizes& sizes) {
  Layout layout;
  layout.add_member(kMetadataMember, sizes.metadata);
  layout.add_member(kPlanMember, sizes.plan);
  layout.add_member(kCodeMember, sizes.code);
  layout.add_alignment();
  layout.add_member(kParamsMember, sizes.params);
  layout.add(std::string(2 * kBlock, '\0'));
  return layout.take();
}

std::string plain_archive(const std::vector<std::pair<std::string, std::string>>& files) {
  constexpr size_t kLongest = 99;
  std::string archive;
  for (const auto& [name, bytes] : files) {
    TM_CHECK(name.size() <= kLongest, "too long a name for an archive: " + name);
    const auto size = static_cast<int64_t>(bytes.size());
    archive += header_of(name, size) + bytes;
    archive.append(static_cast<size_t>(padding_of(size)), '\0');
  }
  return archive.append(2 * kBlock, '\0');
}

}  // namespace tensormill::package
