#include <libdeflate.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "runtime/base/error.h"
#include "runtime/base/number_text.h"
#include "runtime/base/text.h"
#include "runtime/npz/npy_header.h"
#include "runtime/npz/npz.h"
#include "runtime/npz/zip.h"

namespace tensormill::npz {

namespace {

/// Reads magic, version and dict, of `most` bytes in all; afterwards the stream stands at the data.
template <typename Stream>
NpyHeader read_header(Stream& stream, size_t& header_size, size_t most = kMaxNpyHeader) {
  uint8_t fixed[12] = {};
  stream.read(std::as_writable_bytes(std::span(fixed, 10)));
  if (std::memcmp(fixed, "\x93NUMPY", 6) != 0) throw Error(ErrorCode::kInvalidNpz, "no .npy magic");
  if (fixed[6] < 1 || fixed[6] > 3 || fixed[7] != 0) {
    throw Error(ErrorCode::kInvalidNpz,
                ".npy version " + std::to_string(fixed[6]) + "." + std::to_string(fixed[7]) + " is unknown");
  }
  size_t length = fixed[8] | static_cast<size_t>(fixed[9]) << 8;
  header_size = 10;
  if (fixed[6] >= 2) {
    stream.read(std::as_writable_bytes(std::span(fixed + 10, 2)));
    length |= static_cast<size_t>(fixed[10]) << 16 | static_cast<size_t>(fixed[11]) << 24;
    header_size = 12;
  }
  if (length > std::min(most, kMaxNpyHeader)) {
    const bool alone = length > kMaxNpyHeader;
    throw Error(alone ? ErrorCode::kInvalidNpz : ErrorCode::kTooLarge,
                ".npy header has " + std::to_string(length) + " bytes, at most " +
                    std::to_string(std::min(most, kMaxNpyHeader)) +
                    (alone ? " are allowed" : " are left for names and headers"));
  }
  std::string dict(length, '\0');
  stream.read(std::as_writable_bytes(std::span(dict.data(), dict.size())));
  header_size += length;
  return parse_npy_dict(dict);
}

void swap_bytes(std::span<std::byte> bytes, size_t width) {
  for (size_t i = 0; i + width <= bytes.size(); i += width) {
    std::reverse(bytes.begin() + static_cast<int64_t>(i), bytes.begin() + static_cast<int64_t>(i + width));
  }
}

/// Column-major `source` to row-major `target`.
void transpose_fortran(const std::byte* source, std::byte* target, const Shape& shape, size_t width) {
  const int64_t count = num_elements(shape);
  Shape index(shape.size(), 0);
  Shape strides(shape.size(), 1);
  for (size_t i = 1; i < shape.size(); ++i) strides[i] = strides[i - 1] * shape[i - 1];
  int64_t from = 0;
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(target + static_cast<size_t>(i) * width, source + static_cast<size_t>(from) * width, width);
    for (size_t axis = shape.size(); axis-- > 0;) {
      from += strides[axis];
      if (++index[axis] < shape[axis]) break;
      from -= strides[axis] * shape[axis];
      index[axis] = 0;
    }
  }
}

/// Code points of 4 bytes, zeros behind them, become UTF-8, in place: that is never longer.
void encode_text(std::span<std::byte> bytes, const NpyHeader& header, size_t width) {
  for (size_t at = 0; at + width <= bytes.size(); at += width) {
    const std::span<std::byte> own = bytes.subspan(at, width);
    if (!header.wide_text) {
      const std::string_view text(reinterpret_cast<const char*>(own.data()), width);
      if (!is_utf8(text))
        throw Error(ErrorCode::kInvalidTensor, "string " + std::to_string(at / width) + " is not UTF-8");
      continue;
    }
    const auto point_at = [&](size_t i) {
      char32_t point = 0;
      std::memcpy(&point, own.data() + i * sizeof point, sizeof point);
      return point;
    };
    size_t points = width / sizeof(char32_t);
    while (points > 0 && point_at(points - 1) == U'\0') --points;
    // What is written ends where the point that it is of ended, or before: a string of any length needs no
    // copy.
    size_t end = 0;
    std::string text;
    for (size_t i = 0; i < points; ++i) {
      text.clear();
      append_utf8(text, point_at(i));
      std::memcpy(own.data() + end, text.data(), text.size());
      end += text.size();
    }
    std::fill(own.begin() + static_cast<std::ptrdiff_t>(end), own.end(), std::byte{0});
  }
}

/// Bytes of one element: of a number or a string.
size_t element_bytes(const NpyHeader& header) {
  return header.dtype == kString ? static_cast<size_t>(header.shape.back()) : dtype_bytes(header.dtype);
}

bool is_fortran(const NpyHeader& header) {
  return header.fortran_order && shown_shape(header.dtype, header.shape).size() > 1;
}

/// A header that was read before.
void skip(MemberStream& stream, size_t bytes) {
  std::byte piece[1024];
  while (bytes > 0) {
    const size_t count = std::min(bytes, sizeof piece);
    stream.read(std::span(piece, count));
    bytes -= count;
  }
}

template <typename Stream>
void read_data(Stream& stream, const NpyHeader& header, std::span<std::byte> target) {
  const size_t width = element_bytes(header);
  const Shape shape = shown_shape(header.dtype, header.shape);
  if (is_fortran(header)) {
    const std::shared_ptr<void> scratch = allocate_aligned(target.size());
    stream.read({static_cast<std::byte*>(scratch.get()), target.size()});
    transpose_fortran(static_cast<const std::byte*>(scratch.get()), target.data(), shape, width);
  } else {
    stream.read(target);
  }
  stream.finish();
  if (header.swap_bytes) swap_bytes(target, header.dtype == kString ? 4 : width);
  if (header.dtype == kString) encode_text(target, header, width);
  if (header.dtype == DType::kBool)
    check_elements(DType::kBool, target.data(), static_cast<int64_t>(target.size()), "its data");
}

int64_t checked_bytes(const NpyHeader& header, const Limits& limits) {
  const int64_t bytes = num_bytes(header.shape, header.dtype);
  if (bytes > limits.max_tensor_bytes) {
    throw Error(ErrorCode::kTooLarge, "tensor " + to_string(header.shape) + " has " + std::to_string(bytes) +
                                          " bytes, at most " + std::to_string(limits.max_tensor_bytes) +
                                          " are allowed");
  }
  return bytes;
}

/// A .npy file that is not in a container.
class FileStream {
public:
  explicit FileStream(std::span<const std::byte> file) : file_(file) {}
  void read(std::span<std::byte> target) {
    if (target.size() > file_.size()) {
      throw Error(ErrorCode::kInvalidNpz,
                  ".npy file ends " + std::to_string(target.size() - file_.size()) + " bytes early");
    }
    if (!target.empty()) std::memcpy(target.data(), file_.data(), target.size());
    file_ = file_.subspan(target.size());
  }
  void finish() const {
    if (!file_.empty()) throw Error(ErrorCode::kInvalidNpz, ".npy file has bytes after its array");
  }

private:
  std::span<const std::byte> file_;
};

}  // namespace

struct Reader::Member {
  ZipMember zip;
  NpyHeader header;
  size_t header_size;
};

Reader::Reader(std::span<const std::byte> archive, const Limits& limits) {
  constexpr std::string_view kSuffix = ".npy";
  std::set<std::string> names;
  int64_t total = 0;
  size_t headers_left = static_cast<size_t>(limits.max_header_bytes);
  for (ZipMember& zip : read_zip_directory(archive, limits.max_members)) {
    if (!zip.name.ends_with(kSuffix) || zip.name.find('\0') != std::string::npos) {
      throw Error(ErrorCode::kInvalidNpz, "member \"" + zip.name + "\" is not a .npy file");
    }
    const std::string name = zip.name.substr(0, zip.name.size() - kSuffix.size());
    if (!names.insert(name).second) {
      throw Error(ErrorCode::kInvalidNpz, "tensor \"" + name + "\" is there twice");
    }
    try {
      if (name.size() > headers_left) {
        throw Error(ErrorCode::kTooLarge, "names and .npy headers have more than " +
                                              std::to_string(limits.max_header_bytes) + " bytes together");
      }
      headers_left -= name.size();
      MemberStream stream(zip);
      size_t header_size = 0;
      const NpyHeader header = read_header(stream, header_size, headers_left);
      headers_left -= std::min(headers_left, header_size);
      const int64_t bytes = checked_bytes(header, limits);
      total += bytes;
      if (total > limits.max_total_bytes) {
        throw Error(ErrorCode::kTooLarge,
                    "tensors have more than " + std::to_string(limits.max_total_bytes) + " bytes together");
      }
      if (zip.size != header_size + static_cast<uint64_t>(bytes)) {
        throw Error(ErrorCode::kInvalidNpz, "member has " + std::to_string(zip.size) +
                                                " bytes, its header asks for " +
                                                std::to_string(header_size + static_cast<uint64_t>(bytes)));
      }
      entries_.push_back({name, header.dtype, header.shape, bytes});
      members_.push_back({std::move(zip), header, header_size});
    } catch (Error& error) {
      error.add_context("tensor \"" + name + "\"");
      throw;
    }
  }
}

Reader::~Reader() = default;
Reader::Reader(Reader&&) noexcept = default;

std::optional<size_t> Reader::find(std::string_view name) const {
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].name == name) return i;
  }
  return std::nullopt;
}

void Reader::read_into(size_t index, std::span<std::byte> target) const {
  TM_CHECK(index < members_.size(), "member " + std::to_string(index));
  TM_CHECK(target.size() == static_cast<size_t>(entries_[index].bytes), "target of " + entries_[index].name);
  try {
    MemberStream stream(members_[index].zip);
    skip(stream, members_[index].header_size);
    read_data(stream, members_[index].header, target);
  } catch (Error& error) {
    error.add_context("tensor \"" + entries_[index].name + "\"");
    throw;
  }
}

int64_t Reader::scratch_bytes(size_t index) const {
  TM_CHECK(index < entries_.size(), "member " + std::to_string(index));
  return is_fortran(members_[index].header) ? entries_[index].bytes : 0;
}

Tensor Reader::read(size_t index) const {
  TM_CHECK(index < entries_.size(), "member " + std::to_string(index));
  Tensor tensor(entries_[index].dtype, entries_[index].shape);
  read_into(index, {static_cast<std::byte*>(tensor.data()), tensor.num_bytes()});
  return tensor;
}

std::optional<TensorView> Reader::view(size_t index) const {
  TM_CHECK(index < members_.size(), "member " + std::to_string(index));
  const Member& member = members_[index];
  const std::byte* data = member.zip.data.data() + member.header_size;
  const bool fortran = member.header.fortran_order && member.header.shape.size() > 1;
  const bool aligned = reinterpret_cast<uintptr_t>(data) % dtype_bytes(member.header.dtype) == 0;
  if (member.zip.deflated || fortran || member.header.swap_bytes || !aligned ||
      member.header.dtype == DType::kBool || member.header.dtype == kString) {
    return std::nullopt;
  }
  if (::libdeflate_crc32(0, member.zip.data.data(), member.zip.data.size()) != member.zip.crc) {
    throw Error(ErrorCode::kInvalidNpz, "tensor \"" + entries_[index].name + "\" has a wrong CRC");
  }
  return TensorView{member.header.dtype, member.header.shape, data};
}

std::vector<NamedTensor> read_npz(std::span<const std::byte> archive, const Limits& limits) {
  const Reader reader(archive, limits);
  std::vector<NamedTensor> result;
  for (size_t i = 0; i < reader.entries().size(); ++i) {
    result.push_back({reader.entries()[i].name, reader.read(i)});
  }
  return result;
}

Tensor read_npy(std::span<const std::byte> file, const Limits& limits) {
  FileStream stream(file);
  size_t header_size = 0;
  const NpyHeader header = read_header(stream, header_size);
  const int64_t bytes = checked_bytes(header, limits);
  // Checked before the allocation: a header must not make us allocate what the file cannot hold.
  if (file.size() != header_size + static_cast<uint64_t>(bytes)) {
    throw Error(ErrorCode::kInvalidNpz, ".npy file has " + std::to_string(file.size()) +
                                            " bytes, its header asks for " +
                                            std::to_string(header_size + static_cast<uint64_t>(bytes)));
  }
  Tensor tensor(header.dtype, header.shape);
  read_data(stream, header, {static_cast<std::byte*>(tensor.data()), tensor.num_bytes()});
  return tensor;
}

}  // namespace tensormill::npz
