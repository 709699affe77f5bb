// NAME-0000.params: dmlc's stream of NDArrays and their names.
#include <algorithm>
#include <cstring>

#include "compiler/build/rows.h"
#include "compiler/frontend/mxnet/model.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace tensormill::frontend::mxnet {

namespace {

constexpr uint64_t kFileMagic = 0x112;
constexpr uint32_t kV1 = 0xF993FAC8, kV2 = 0xF993FAC9, kV3 = 0xF993FACA;
constexpr uint32_t kMostArrayDims = 32;
constexpr size_t kMostNameBytes = 4096;

class Stream {
public:
  explicit Stream(std::string_view bytes) : bytes_(bytes) {}

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::kInvalidModel, "the parameters: byte " + std::to_string(at_) + ": " + what);
  }
  size_t left() const { return bytes_.size() - at_; }
  std::string_view take(uint64_t count, const char* what) {
    if (count > left())
      fail(std::string(what) + " has " + std::to_string(count) + " bytes, " + std::to_string(left()) +
           " are left");
    const std::string_view taken = bytes_.substr(at_, count);
    at_ += count;
    return taken;
  }
  template <typename T>
  T number(const char* what) {
    T value = 0;
    std::memcpy(&value, take(sizeof(value), what).data(), sizeof(value));
    return value;
  }

private:
  std::string_view bytes_;
  size_t at_ = 0;
};

Shape shape_of(Stream& stream, uint32_t dims, bool is_wide) {
  if (dims > kMostArrayDims) stream.fail("an array of " + std::to_string(dims) + " dims");
  Shape shape;
  for (uint32_t d = 0; d < dims; ++d) {
    const int64_t dim = is_wide ? stream.number<int64_t>("a dim") : int64_t{stream.number<uint32_t>("a dim")};
    if (dim < 0) stream.fail("a dim of " + std::to_string(dim));
    shape.push_back(dim);
  }
  return shape;
}

/// The array that stands next; nothing for one that has no elements, as MXNet keeps arrays that were never
/// filled.
std::optional<Parameter> array(Stream& stream) {
  const auto magic = stream.number<uint32_t>("an array's mark");
  const bool is_marked = magic == kV1 || magic == kV2 || magic == kV3;
  if (magic == kV2 || magic == kV3) {
    const auto storage = stream.number<int32_t>("a storage type");
    if (storage != 0 && storage != -1)
      throw Error(ErrorCode::kNotSupported,
                  "the parameters have sparse arrays: store them dense, array.tostype(\"default\")");
    if (storage == -1) return std::nullopt;
  }
  const uint32_t dims = is_marked ? stream.number<uint32_t>("a number of dims") : magic;
  // Where shapes are numpy's an array of no dims is a number, and -1 dims are none.
  if (dims == 0 && magic != kV3) return std::nullopt;
  if (magic == kV3 && dims == UINT32_MAX) return std::nullopt;
  Parameter made;
  made.shape = shape_of(stream, dims, is_marked);
  stream.take(2 * sizeof(int32_t), "a device");
  const auto flag = stream.number<int32_t>("a type");
  const std::optional<DType> dtype = dtype_of(flag);
  if (!dtype) stream.fail("elements of type " + std::to_string(flag) + ", which is not known");
  made.dtype = *dtype;
  uint64_t bytes = dtype_bytes(*dtype);
  for (const int64_t dim : made.shape)
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(dim), &bytes))
      stream.fail("an array of shape " + to_string(made.shape));
  made.bytes = stream.take(bytes, "an array");
  return made;
}

std::string_view without_kind(std::string_view name) {
  return name.starts_with("arg:") || name.starts_with("aux:") ? name.substr(4) : name;
}

}  // namespace

std::optional<DType> dtype_of(int64_t flag) {
  constexpr build::NumberedType kTypes[] = {
#define MXNET_TYPE(flag, type) {flag, DType::type},
#include "compiler/frontend/mxnet/type_flags.def"
#undef MXNET_TYPE
  };
  return build::dtype_numbered(kTypes, flag);
}

bool is_parameters(std::string_view bytes) {
  uint64_t head[2] = {0, 1};
  if (bytes.size() < sizeof(head) + sizeof(uint64_t)) return false;
  std::memcpy(head, bytes.data(), sizeof(head));
  return head[0] == kFileMagic && head[1] == 0;
}

Parameters read_parameters(std::string_view bytes) {
  Stream stream(bytes);
  if (stream.number<uint64_t>("the file's mark") != kFileMagic || stream.number<uint64_t>("zero") != 0)
    stream.fail("the file does not begin as files of parameters do");
  const auto count = stream.number<uint64_t>("a number of arrays");
  // Each has four bytes at least, and each name eight.
  if (count > stream.left() / 4) stream.fail(std::to_string(count) + " arrays");
  std::vector<std::optional<Parameter>> arrays;
  for (uint64_t i = 0; i < count; ++i) {
    try {
      arrays.push_back(array(stream));
    } catch (Error& error) {
      error.add_context("array " + std::to_string(i));
      throw;
    }
  }
  const auto names = stream.number<uint64_t>("a number of names");
  if (names != count) stream.fail(std::to_string(names) + " names of " + std::to_string(count) + " arrays");
  Parameters parameters;
  for (const std::optional<Parameter>& each : arrays) {
    const auto length = stream.number<uint64_t>("a name's length");
    if (length > kMostNameBytes) stream.fail("a name of " + std::to_string(length) + " bytes");
    const std::string_view name = stream.take(length, "a name");
    if (!is_utf8(name)) stream.fail("a name that is no text of UTF-8");
    if (each && !parameters.emplace(without_kind(name), *each).second)
      stream.fail("\"" + std::string(name.substr(0, 200)) + "\" stands twice");
  }
  return parameters;
}

}  // namespace tensormill::frontend::mxnet
