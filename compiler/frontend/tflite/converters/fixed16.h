/// gemmlowp's functions of 16 bits, of which TensorFlow Lite's recurrent layers are made. Thread-safety: pure
/// functions.
#pragma once

#include <cstdint>

namespace tensormill::frontend::tflite {

/// 1 / (1 + e^-x) in 15 bits behind the point, of x with 12: the logistic function of [-8, 8).
int16_t fixed_sigmoid(int16_t x);

/// tanh(x) in 15 bits behind the point, of x with `integer_bits` in front of it, 0 to 6.
int16_t fixed_tanh(int16_t x, int integer_bits);

}  // namespace tensormill::frontend::tflite
