/// Names as Keras makes them. Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace tensormill::frontend::keras {

/// "MaxPooling2D" -> "max_pooling2d", "ReLU" -> "re_lu": the group of a layer's weights.
std::string snake_case(std::string_view class_name);
/// Whether `one` stands before `other` where numbers in both are compared as such: "vars/2" before "vars/10".
bool natural_less(std::string_view one, std::string_view other);

}  // namespace tensormill::frontend::keras
