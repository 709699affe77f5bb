/// The member `data` of an input as it comes out of a JSON text: typed bytes at once, no document between.
/// Thread-safety: one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/tensor.h"

namespace tensormill::endpoints {

/// Values in order, in blocks, so that many of them are never moved: about as many bytes as they had in JSON.
class ValueLog {
public:
  /// `kind`: '"' for a string, else what the text of a value begins with.
  void add(char kind, std::string_view text);
  /// Calls `each(kind, text)` in order. What `texts_stay` is false for goes as soon as it was read.
  void replay(bool texts_stay, const std::function<void(char, std::string_view)>& each);

private:
  std::vector<std::string> blocks_;
};

class TensorData {
public:
  struct Limits {
    uint64_t bytes = 0;   ///< of the tensor
    uint64_t before = 0;  ///< elements of the inputs before this one
    /// Elements that all inputs of a request may have. Called once, and not before there are many.
    std::function<uint64_t()> elements;
  };
  /// `where`: the input, for errors.
  TensorData(std::string where, Limits limits);

  /// What the elements are. May come after them: until then they are held as they were written.
  void declare(std::string where, DType dtype, Shape shape);
  bool declared() const { return declared_; }

  /// A value: the text of a number, "true", "false", "null", or a string of kind '"'. Throws
  /// Error(kInvalidTensor) with the index of the element for what the type does not have, and for more
  /// elements than there may be; Error(kTooLarge) past the limit in bytes.
  void value(char kind, std::string_view text);
  /// Arrays in arrays, as the shape is, or one array: nobody needs to say which. But a text of nothing else
  /// is no tensor.
  void begin_array();
  [[noreturn]] void refuse_object() const;

  /// `body`: the size of the request, of which strings must not make too much. Throws Error(kInvalidTensor)
  /// when elements are missing.
  Tensor finish(uint64_t body);

private:
  [[noreturn]] void refuse(const std::string& what) const;
  void store(char kind, std::string_view text);
  void check_room();
  void make_room();

  std::string where_;
  Limits limits_;
  bool declared_ = false;
  DType dtype_ = DType::kFloat32;
  Shape shape_;
  uint64_t size_ = 0;      ///< of an element
  uint64_t expected_ = 0;  ///< elements of the shape
  uint64_t room_ = 0;      ///< elements that there is memory for
  uint64_t checked_ = 0;   ///< elements up to which none of the limits is near
  uint64_t count_ = 0;
  uint64_t arrays_ = 0;
  std::shared_ptr<void> owner_;
  ValueLog kept_;  ///< before the declaration; strings always
};

/// Strings as a tensor. All get the width of the longest, which must not make much of a small body, and not
/// more than `most` bytes.
Tensor strings_tensor(const Shape& shape, const std::vector<std::string_view>& texts, uint64_t body,
                      uint64_t most, const std::string& where);

}  // namespace tensormill::endpoints
