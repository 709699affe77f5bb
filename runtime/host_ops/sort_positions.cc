// Positions of the first elements of sorted rows. Elements become signed integers of the same order, and of
// 32 bits with their position one integer, so that one comparison decides. Few of many are collected above a
// bound that rises; most of many are sorted by their digits (Knuth, TAOCP 3, 5.2.5).
#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <limits>
#include <numeric>
#include <type_traits>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/host_ops/dense_steps.h"
#include "runtime/host_ops/host_call.h"
#include "runtime/host_ops/lines.h"

namespace tensormill::host_ops {

namespace {

/// Floats of 16 bits, as they lie in memory.
template <uint16_t infinity>
struct Half {
  uint16_t bits;
};
using Float16 = Half<0x7c00>;
using BFloat16 = Half<0x7f80>;

/// The order of floats by their bits: both zeros are equal, and NaN is the largest.
template <typename Key>
Key ordered_bits(Key bits, Key infinity) {
  constexpr Key kMost = std::numeric_limits<Key>::max();
  const Key magnitude = bits & kMost;
  const Key ordered = magnitude == 0 ? Key{0} : bits ^ ((bits >> (8 * sizeof(Key) - 1)) & kMost);
  return magnitude > infinity ? kMost : ordered;
}

/// Integers in the order of T.
template <typename T>
auto key_of(T value) {
  if constexpr (std::is_same_v<T, float>) {
    return ordered_bits<int32_t>(std::bit_cast<int32_t>(value), 0x7f800000);
  } else if constexpr (std::is_same_v<T, double>) {
    return ordered_bits<int64_t>(std::bit_cast<int64_t>(value), 0x7ff0000000000000);
  } else if constexpr (std::is_integral_v<T> && sizeof(T) < 4) {
    return static_cast<int32_t>(value);
  } else if constexpr (std::is_unsigned_v<T>) {
    return static_cast<std::make_signed_t<T>>(value ^ (T{1} << (8 * sizeof(T) - 1)));
  } else {
    return value;
  }
}

/// With zeros behind, they are as floats of 32 bits.
template <uint16_t infinity>
int32_t key_of(Half<infinity> value) {
  return ordered_bits<int32_t>(static_cast<int32_t>(uint32_t{value.bits} << 16), int32_t{infinity} << 16);
}

constexpr size_t kChunk = 32;

/// The keys of one row, inverted for rising order.
template <typename T, typename Key>
void read_keys(const T* x, int64_t stride, bool largest, std::vector<Key>& keys) {
  const Key flip = largest ? Key{0} : Key{-1};
  const size_t count = keys.size(), whole = stride == 1 ? count / kChunk * kChunk : 0;
  // Loops of a known length become vectors.
  for (size_t begin = 0; begin < whole; begin += kChunk) {
    for (size_t i = 0; i < kChunk; ++i) keys[begin + i] = key_of(x[begin + i]) ^ flip;
  }
  for (size_t i = whole; i < count; ++i) keys[i] = key_of(x[static_cast<int64_t>(i) * stride]) ^ flip;
}

/// A key and its position, of which the greater comes first: of equal keys the lower position.
struct WideEntry {
  int64_t key, inverted;
  WideEntry() = default;
  WideEntry(int64_t k, size_t position) : key(k), inverted(~static_cast<int64_t>(position)) {}
  int64_t position() const { return ~inverted; }
  bool operator>(const WideEntry& other) const {
    return key != other.key ? key > other.key : inverted > other.inverted;
  }
};

struct NarrowEntry {
  int64_t bits;
  NarrowEntry() = default;
  NarrowEntry(int32_t key, size_t position)
      : bits(static_cast<int64_t>(key) * (int64_t{1} << 32) | static_cast<uint32_t>(~position)) {}
  int64_t position() const { return static_cast<uint32_t>(~bits); }
  bool operator>(const NarrowEntry& other) const { return bits > other.bits; }
};

template <typename Key>
using EntryOf = std::conditional_t<sizeof(Key) == 4, NarrowEntry, WideEntry>;

template <typename Key>
bool any_above(const Key* keys, Key bound) {
  Key any = 0;
  for (size_t i = 0; i < kChunk; ++i) any |= keys[i] > bound ? Key{1} : Key{0};
  return any != 0;
}

/// The greatest k of the keys, sorted, at the start of `entries`.
template <typename Key>
void collect(const std::vector<Key>& keys, size_t k, std::vector<EntryOf<Key>>& entries) {
  const size_t count = keys.size(), room = std::max<size_t>(2 * k, k + kChunk);
  entries.resize(room + kChunk);
  const auto to = [&](size_t at) { return entries.begin() + static_cast<std::ptrdiff_t>(at); };
  size_t kept = 0;
  bool is_bounded = false;
  Key bound = 0;
  for (size_t begin = 0; begin < count; begin += kChunk) {
    const size_t end = std::min(begin + kChunk, count);
    if (is_bounded) {
      // Those that come later and equal the bound are behind it.
      if (end - begin == kChunk && !any_above(&keys[begin], bound)) continue;
      for (size_t i = begin; i < end; ++i) {
        entries[kept] = EntryOf<Key>(keys[i], i);
        kept += keys[i] > bound ? 1 : 0;
      }
    } else {
      for (size_t i = begin; i < end; ++i) entries[kept++] = EntryOf<Key>(keys[i], i);
    }
    if (kept < room) continue;
    std::nth_element(to(0), to(k - 1), to(kept), std::greater<>());
    kept = k;
    bound = keys[static_cast<size_t>(entries[k - 1].position())];
    is_bounded = true;
  }
  if (kept > k) std::nth_element(to(0), to(k - 1), to(kept), std::greater<>());
  std::sort(to(0), to(k), std::greater<>());
}

/// The same for a few: each that is greater than the last of them goes to its place.
template <typename Key>
void insert(const std::vector<Key>& keys, size_t k, std::vector<EntryOf<Key>>& entries) {
  entries.resize(k);
  const size_t count = keys.size();
  size_t kept = 0;
  Key bound = 0;
  for (size_t begin = 0; begin < count; begin += kChunk) {
    const size_t end = std::min(begin + kChunk, count);
    if (kept == k && end - begin == kChunk && !any_above(&keys[begin], bound)) continue;
    for (size_t i = begin; i < end; ++i) {
      if (kept == k && keys[i] <= bound) continue;
      const EntryOf<Key> entry(keys[i], i);
      size_t at = kept < k ? kept++ : k - 1;
      for (; at > 0 && entry > entries[at - 1]; --at) entries[at] = entries[at - 1];
      entries[at] = entry;
      bound = keys[static_cast<size_t>(entries[kept - 1].position())];
    }
  }
}

/// The positions of all keys in falling order, equal ones in rising order of position.
class DigitSort {
public:
  const std::vector<uint32_t>& sorted(const std::vector<int32_t>& keys) {
    const size_t count = keys.size();
    order_.resize(count);
    next_.resize(count);
    std::iota(order_.begin(), order_.end(), 0U);
    for (unsigned shift = 0; shift < 32; shift += kBits) {
      std::array<uint32_t, size_t{1} << kBits> starts{};
      for (const int32_t key : keys) ++starts[digit(key, shift)];
      if (starts[digit(keys[0], shift)] == count) continue;
      uint32_t total = 0;
      for (uint32_t& start : starts) total += std::exchange(start, total);
      for (const uint32_t at : order_) next_[starts[digit(keys[at], shift)]++] = at;
      std::swap(order_, next_);
    }
    return order_;
  }

private:
  static constexpr unsigned kBits = 11;

  /// Of the inverted key, whose rising order is the falling one of keys.
  static size_t digit(int32_t key, unsigned shift) {
    const uint32_t inverted = static_cast<uint32_t>(key) ^ 0x7fffffffU;
    return inverted >> shift & ((size_t{1} << kBits) - 1);
  }

  std::vector<uint32_t> order_, next_;
};

template <typename T>
void sort_lines(const HostCall& call, const Lines& lines, int64_t k, bool largest, int64_t* positions) {
  using Key = decltype(key_of(T{}));
  constexpr int64_t kFew = 12, kMany = 1024;
  const auto* x = static_cast<const T*>(call.inputs[0].data);
  std::vector<Key> keys(static_cast<size_t>(lines.extent));
  std::vector<EntryOf<Key>> entries;
  DigitSort digits;
  const auto row = [&](int64_t* out, const auto& position) {
    for (int64_t i = 0; i < k; ++i) out[i * lines.inner] = position(static_cast<size_t>(i));
  };
  for (int64_t outer = 0; outer < lines.outer; ++outer) {
    for (int64_t inner = 0; inner < lines.inner; ++inner) {
      read_keys(x + outer * lines.extent * lines.inner + inner, lines.inner, largest, keys);
      int64_t* out = positions + outer * k * lines.inner + inner;
      if constexpr (sizeof(Key) == 4) {
        if (k >= kMany / 4 && lines.extent >= kMany && k >= lines.extent / 8) {
          const std::vector<uint32_t>& order = digits.sorted(keys);
          row(out, [&](size_t i) { return static_cast<int64_t>(order[i]); });
          continue;
        }
      }
      (k <= kFew ? insert<Key> : collect<Key>)(keys, static_cast<size_t>(k), entries);
      row(out, [&](size_t i) { return entries[i].position(); });
    }
  }
}

}  // namespace

void sort_positions(const HostCall& call) {
  expect(call, 1, 1);
  const TensorView& x = call.inputs[0];
  const Lines lines(x.shape, axis_of(call, x.shape.size()));
  const int64_t rows = lines.outer * lines.inner;
  const auto entries = static_cast<int64_t>(call.output_bytes[0] / sizeof(int64_t));
  const int64_t k = rows == 0 ? 0 : entries / rows;
  int64_t* positions = integers(call, 0, rows * k);
  if (k > lines.extent || lines.extent > std::numeric_limits<int32_t>::max())
    throw Error(ErrorCode::kInvalidPackage, "a host step sorts more elements than there are");
  const bool largest = Attributes(call).flag("largest");
  if (k == 0) return;
  switch (x.dtype) {
    case DType::kFloat32:
      return sort_lines<float>(call, lines, k, largest, positions);
    case DType::kFloat64:
      return sort_lines<double>(call, lines, k, largest, positions);
    case DType::kFloat16:
      return sort_lines<Float16>(call, lines, k, largest, positions);
    case DType::kBFloat16:
      return sort_lines<BFloat16>(call, lines, k, largest, positions);
    case DType::kInt8:
      return sort_lines<int8_t>(call, lines, k, largest, positions);
    case DType::kInt16:
      return sort_lines<int16_t>(call, lines, k, largest, positions);
    case DType::kInt32:
      return sort_lines<int32_t>(call, lines, k, largest, positions);
    case DType::kInt64:
      return sort_lines<int64_t>(call, lines, k, largest, positions);
    case DType::kUInt8:
    case DType::kBool:
      return sort_lines<uint8_t>(call, lines, k, largest, positions);
    case DType::kUInt16:
      return sort_lines<uint16_t>(call, lines, k, largest, positions);
    case DType::kUInt32:
      return sort_lines<uint32_t>(call, lines, k, largest, positions);
    case DType::kUInt64:
      return sort_lines<uint64_t>(call, lines, k, largest, positions);
    default:
      throw Error(ErrorCode::kInvalidPackage, "a host step sorts elements of a type that has no order");
  }
}

}  // namespace tensormill::host_ops
