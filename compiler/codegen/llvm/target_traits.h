/// What instruction selection can do on a target, as far as the emitter must know to stay free of library
/// calls. Thread-safety: values.
#pragma once

#include <string>

#include "compiler/target/target.h"

namespace tensormill::codegen {

struct TargetTraits {
  bool fma = false;             ///< fused multiply-add of f32 and f64
  bool rounding = false;        ///< floor, ceil, trunc, round to even as instructions
  bool half_convert = false;    ///< f16 <-> f32 as instructions
  bool native_min_max = false;  ///< IEEE 754-2019 minimum and maximum as instructions
  bool range = false;           ///< x86's minimum and maximum that tell -0 from +0, of 16 f32
  bool gather = false;          ///< fast gathers of 32- and 64-bit elements
  bool dot4_512 = false;        ///< x86's sums of four byte products, in 16 lanes
  bool dot4_256 = false;        ///< the same in 8 and 4 lanes
  bool scaling = false;         ///< x86's scalef and rcp14 of f32, in 16, 8 and 4 lanes
  bool lookup_512 = false;      ///< x86's lookups in a table of 128 bytes, in 64 lanes
  bool lookup_128 = false;      ///< AArch64's lookups in a table of 64 bytes, in 16 lanes
  std::string cpu;
  std::string features;  ///< LLVM's list, every tracked feature on or off
  std::string triple;
  int vector_bits = 128;
};

TargetTraits traits_of(const target::Target& target);

}  // namespace tensormill::codegen
