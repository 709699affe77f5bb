/// What a .tflite file says, as plain structs over the mapped file: names, lists and weights are views, never
/// copies. The reader has checked every index, size and enumerator, so that converters need not. Numbers are
/// those of the schema (schema.fbs), version 3. Thread-safety: values; views live as long as the bytes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tensormill::frontend::tflite {

using Ints = std::span<const int32_t>;
using Longs = std::span<const int64_t>;
using Floats = std::span<const float>;
using Bools = std::span<const uint8_t>;
using Precisions = std::span<const uint32_t>;

enum class TensorType : int8_t {
  kFloat32,
  kFloat16,
  kInt32,
  kUInt8,
  kInt64,
  kString,
  kBool,
  kInt16,
  kComplex64,
  kInt8,
  kFloat64,
  kComplex128,
  kUInt64,
  kResource,
  kVariant,
  kUInt32,
  kUInt16,
  kInt4,
  kBFloat16,
  kInt2,
  kUInt4,
  kFloat8E4M3FN,
  kFloat8E5M2,
};
enum class Padding : int8_t { kSame, kValid };
enum class Activation : int8_t { kNone, kRelu, kReluN1To1, kRelu6, kTanh, kSignBit };
enum class LshProjection : int8_t { kUnknown, kSparse, kDense };
enum class WeightsFormat : int8_t { kDefault, kShuffled4x16Int8 };
enum class LstmKernel : int8_t { kFull, kBasic };
enum class Combiner : int8_t { kSum, kMean, kSqrtN };
enum class MirrorPadMode : int8_t { kReflect, kSymmetric };
enum class CustomFormat : int8_t { kFlexBuffers };
enum class ReduceWindowFunction : int32_t { kUnsupported, kAdd, kMul, kMinimum, kMaximum, kAll, kAny };
enum class ComparisonDirection : uint32_t { kEq, kNe, kGe, kGt, kLe, kLt };
enum class ComparisonType : uint32_t { kNone, kFloat, kFloatTotalOrder, kSigned, kUnsigned };
enum class RngAlgorithm : int8_t { kDefault, kPhilox, kThreefry };

/// "float32", "int4", "string" …
std::string_view type_name(TensorType type);
/// Bits of an element; 0 for strings, resources and variants.
int type_bits(TensorType type);

// One struct a row: its fields, of which those that the file leaves out have the schema's default.
#define TFL_FIELD(type, field) type field{};
#define TFL_OPTIONS(name, union_number, number, ...) \
  struct name {                                      \
    __VA_ARGS__                                      \
  };
#include "compiler/frontend/tflite/options.def"
#undef TFL_OPTIONS
#undef TFL_FIELD

/// Of an operator without fields, or whose options are left out: std::monostate.
using Options = std::variant<std::monostate
#define TFL_OPTIONS(name, union_number, number, ...) , name
#include "compiler/frontend/tflite/options.def"
#undef TFL_OPTIONS
                             >;

/// Scales and zero points of blocks are tensors of the same subgraph; no zero points: -1.
struct BlockwiseQuantization {
  int32_t scales = -1, zero_points = -1, block_size = 0;
};
struct MultiAxisQuantization {
  int32_t scales = -1, zero_points = -1, block_size = 0;
  Ints dims;
};
/// real = scale * (q - zero_point): one of each, or one a slice along `dimension`. No scale: not quantized.
struct Quantization {
  Floats min, max;
  Floats scale;
  Longs zero_point;  ///< one a scale, one for all, or none: 0
  int32_t dimension = 0;
  /// Overrides the above where it is set.
  std::variant<std::monostate, std::string_view, BlockwiseQuantization, MultiAxisQuantization> details;
  bool is_quantized() const { return !scale.empty() || details.index() != 0; }
};

/// A dimension of a sparse constant: dense_size entries, or for each parent position p those from segments[p]
/// to segments[p+1], at `indices`.
struct SparseDimension {
  bool is_csr = false;
  int32_t dense_size = 0;
  std::vector<int32_t> segments, indices;
};
struct Sparsity {
  Ints traversal_order, block_map;
  std::vector<SparseDimension> dims;  ///< in the order of the walk
};

struct Tensor {
  std::string_view name;  ///< may be empty, and stand twice: a tensor is known by its index
  TensorType type = TensorType::kFloat32;
  Ints shape;
  /// -1: free. As `shape` where the file has none.
  Ints signature;
  bool has_rank = false;
  bool is_variable = false;
  Quantization quantization;
  std::optional<Sparsity> sparsity;
  uint32_t buffer = 0;
  uint32_t external_buffer = 0;  ///< in Model::external_buffers by its id; 0: none
  bool is_constant = false;      ///< has bytes, and is no input of its subgraph
  std::string_view data;         ///< of a constant that lies in the file
};

struct OperatorCode {
  int32_t builtin = 0;      ///< a row of operators.def
  std::string_view custom;  ///< the name of a custom operator
  int32_t version = 1;
};
struct Operator {
  uint32_t code = 0;  ///< in Model::codes
  Ints inputs;        ///< tensors of the subgraph; -1: absent
  Ints outputs;
  Ints intermediates;
  Bools mutating_variable_inputs;
  Options options;
  std::string_view custom_options;
};
struct Subgraph {
  std::string_view name;
  std::vector<Tensor> tensors;
  Ints inputs, outputs;
  std::vector<Operator> operators;  ///< in the order of execution
};

struct NamedTensor {
  std::string_view name;
  uint32_t tensor = 0;
};
/// An entry point: names for a subgraph's inputs and outputs.
struct Signature {
  std::string_view key;
  uint32_t subgraph = 0;
  std::vector<NamedTensor> inputs, outputs;
};
/// Bytes in a file beside the model.
struct ExternalBuffer {
  std::string_view group;
  uint64_t offset = 0, length = 0;
  std::string_view packing;
};

struct Model {
  std::string_view description;
  std::vector<OperatorCode> codes;
  std::vector<Subgraph> subgraphs;  ///< the first is the main one
  std::vector<std::string_view> buffers;
  std::map<std::string_view, std::string_view> metadata;  ///< by name
  std::vector<Signature> signatures;
  std::map<uint32_t, ExternalBuffer> external_buffers;
};

/// "CONV_2D", the name of a custom operator, or "BUILTIN_210" for a code that is newer than the table.
std::string operator_name(const OperatorCode& code);
/// The name of a builtin code; "" for an unknown one.
std::string_view builtin_name(int32_t code);

/// Reads the file, whose bytes are aligned to 16 in memory, as a mapping is. Throws Error(kInvalidModel)
/// naming the table and where it is in the file; Error(kNotSupported) for another version of the schema. At
/// most a million tables, 64 deep.
Model read_model(std::string_view bytes);

/// The elements of a sparse constant in row-major order, zeros where none is stored. Throws
/// Error(kInvalidModel) where it has other than its stored elements, Error(kTooLarge) past `max_bytes`.
std::string densify(const Tensor& tensor, uint64_t max_bytes);
/// Elements of 2 and 4 bits, one a byte, sign-extended; the low bits come first. `count` of them.
std::string unpack_bits(TensorType type, std::string_view packed, uint64_t count);
/// The texts of a constant of strings, of which there are at most `max_count`. Throws Error(kInvalidModel).
std::vector<std::string_view> read_strings(std::string_view data, uint64_t max_count);

}  // namespace tensormill::frontend::tflite
