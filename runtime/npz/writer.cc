#include <libdeflate.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "runtime/base/error.h"
#include "runtime/base/text.h"
#include "runtime/npz/npz.h"

namespace tensormill::npz {

namespace {

void put(std::string& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
}

struct Written {
  std::string name;
  uint32_t crc;
  uint64_t size;
  uint64_t offset;
};

constexpr uint64_t kMax32 = 0xffffffff;
constexpr uint16_t kDate1980 = 0x21;

/// Version to flags to method to time and date, shared by the two headers. Names are UTF-8 (bit 11).
void put_common(std::string& out, bool zip64) {
  put(out, zip64 ? 45 : 20, 2);
  put(out, 1 << 11, 2);
  put(out, 0, 2);
  put(out, 0, 2);
  put(out, kDate1980, 2);
}

/// Strings as code points of 4 bytes, as many each as the longest has, at least 1.
Tensor wide_text(const TensorView& view) {
  const Texts texts(view);
  // Each is decoded twice: all of them decoded would take many times what short ones do.
  size_t longest = 1;
  for (int64_t i = 0; i < texts.count(); ++i) longest = std::max(longest, code_points(texts[i]).size());
  Shape shape = texts.shape();
  shape.push_back(static_cast<int64_t>(4 * longest));
  Tensor wide = Tensor::zeros(kString, std::move(shape));
  auto* target = static_cast<char*>(wide.data());
  for (int64_t i = 0; i < texts.count(); ++i) {
    const std::u32string points = code_points(texts[i]);
    std::memcpy(target + 4 * longest * static_cast<size_t>(i), points.data(), 4 * points.size());
  }
  return wide;
}

Written write_member(std::string& out, const std::string& name, const TensorView& tensor) {
  const uint64_t data_size = static_cast<uint64_t>(num_bytes(tensor.shape, tensor.dtype));
  const std::string file_name = name + ".npy";
  // Sizes stand in a zip64 field always, as numpy does it; the .npy header is padded so that the data is
  // aligned.
  constexpr size_t kLocal = 30;
  constexpr size_t kExtra = 20;
  const std::string header =
      npy_header(tensor.dtype, tensor.shape, out.size() + kLocal + file_name.size() + kExtra);
  Written written{file_name, 0, header.size() + data_size, out.size()};
  written.crc = ::libdeflate_crc32(0, header.data(), header.size());
  if (data_size != 0) written.crc = ::libdeflate_crc32(written.crc, tensor.data, data_size);
  put(out, 0x04034b50, 4);
  put_common(out, true);
  put(out, written.crc, 4);
  put(out, kMax32, 4);
  put(out, kMax32, 4);
  put(out, file_name.size(), 2);
  put(out, kExtra, 2);
  out += file_name;
  put(out, 1, 2);
  put(out, 16, 2);
  put(out, written.size, 8);
  put(out, written.size, 8);
  out += header;
  if (data_size != 0) out.append(static_cast<const char*>(tensor.data), data_size);
  return written;
}

void write_central(std::string& out, const Written& member) {
  put(out, 0x02014b50, 4);
  put(out, 45, 2);
  put_common(out, true);
  put(out, member.crc, 4);
  put(out, kMax32, 4);
  put(out, kMax32, 4);
  put(out, member.name.size(), 2);
  put(out, 28, 2);
  put(out, 0, 2);
  put(out, 0, 2);
  put(out, 0, 2);
  put(out, 0, 4);
  put(out, kMax32, 4);
  out += member.name;
  put(out, 1, 2);
  put(out, 24, 2);
  put(out, member.size, 8);
  put(out, member.size, 8);
  put(out, member.offset, 8);
}

void write_end(std::string& out, uint64_t entries, uint64_t start) {
  const uint64_t size = out.size() - start;
  const uint64_t end64 = out.size();
  put(out, 0x06064b50, 4);
  put(out, 44, 8);
  put(out, 45, 2);
  put(out, 45, 2);
  put(out, 0, 4);
  put(out, 0, 4);
  put(out, entries, 8);
  put(out, entries, 8);
  put(out, size, 8);
  put(out, start, 8);
  put(out, 0x07064b50, 4);
  put(out, 0, 4);
  put(out, end64, 8);
  put(out, 1, 4);
  put(out, 0x06054b50, 4);
  put(out, 0, 4);
  put(out, 0xffff, 2);
  put(out, 0xffff, 2);
  put(out, kMax32, 4);
  put(out, kMax32, 4);
  put(out, 0, 2);
}

}  // namespace

std::string write_npz(const std::vector<NamedView>& tensors) {
  std::set<std::string> names;
  size_t total = 4096;
  for (const NamedView& item : tensors) {
    if (item.name.empty() || item.name.size() > 60000 || item.name.find('\0') != std::string::npos ||
        !names.insert(item.name).second) {
      throw Error(ErrorCode::kInvalidArgument,
                  "tensor name \"" + item.name + "\" is empty, too long or used twice");
    }
    total +=
        static_cast<size_t>(num_bytes(item.tensor.shape, item.tensor.dtype)) + 512 + 2 * item.name.size();
  }
  std::string out;
  out.reserve(total);
  std::vector<Written> members;
  for (const NamedView& item : tensors) {
    if (item.tensor.dtype == kString) {
      const Tensor wide = wide_text(item.tensor);
      members.push_back(write_member(out, item.name, {wide.dtype(), wide.shape(), wide.data()}));
    } else {
      members.push_back(write_member(out, item.name, item.tensor));
    }
  }
  const uint64_t start = out.size();
  for (const Written& member : members) write_central(out, member);
  write_end(out, members.size(), start);
  return out;
}

std::string write_npz(const std::vector<NamedTensor>& tensors) {
  std::vector<NamedView> views;
  for (const NamedTensor& item : tensors) {
    views.push_back({item.name, {item.tensor.dtype(), item.tensor.shape(), item.tensor.data()}});
  }
  return write_npz(views);
}

}  // namespace tensormill::npz
