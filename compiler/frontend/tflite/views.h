/// Lists and texts of a FlatBuffer as views. Thread-safety: pure functions.
#pragma once

#include <flatbuffers/flatbuffers.h>

#include <bit>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace tensormill::frontend::tflite {

static_assert(std::endian::native == std::endian::little, "lists of a file are read where they lie");

/// `T` may be the type that stands for an enumeration. An absent list is empty. Throws Error(kInvalidModel)
/// for one of wide numbers that is not aligned, which the verifier does not look at.
template <typename T, typename Element>
std::span<const T> span_of(const flatbuffers::Vector<Element>* list) {
  static_assert(sizeof(T) == sizeof(Element));
  if (list == nullptr) return {};
  if (reinterpret_cast<uintptr_t>(list->Data()) % alignof(T) != 0)
    throw Error(ErrorCode::kInvalidModel,
                "a list of numbers of " + std::to_string(sizeof(T)) + " bytes is not aligned");
  return {reinterpret_cast<const T*>(list->Data()), list->size()};
}

/// Names and texts go into answers as they are. Throws Error(kInvalidModel) for one that is not UTF-8.
inline std::string_view text_of(const flatbuffers::String* text) {
  if (text == nullptr) return {};
  const std::string_view view(text->c_str(), text->size());
  if (!is_utf8(view)) throw Error(ErrorCode::kInvalidModel, "a name or another text is not UTF-8");
  return view;
}

inline std::string_view bytes_of(const flatbuffers::Vector<uint8_t>* list) {
  return list == nullptr ? std::string_view()
                         : std::string_view(reinterpret_cast<const char*>(list->Data()), list->size());
}

}  // namespace tensormill::frontend::tflite
