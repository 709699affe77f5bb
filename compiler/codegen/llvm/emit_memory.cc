#include <numeric>

#include "compiler/codegen/llvm/kernel_emitter.h"
#include "runtime/base/error.h"

namespace tensormill::codegen {
namespace {

/// Elements that are loaded one by one rather than in vectors that are shuffled.
constexpr int kFewestShuffled = 4;

/// A number that divides the value of an index expression; 0 when the value is 0.
int64_t known_divisor(const te::Expr& expr, int depth = 0) {
  if (const int64_t* value = te::as_int(expr)) return *value < 0 ? -(*value % (int64_t{1} << 62)) : *value;
  if (depth > 8) return 1;
  switch (expr->op) {
    case te::ExprOp::kAdd:
    case te::ExprOp::kSub:
    case te::ExprOp::kMin:
    case te::ExprOp::kMax:
      return std::gcd(known_divisor(expr->args[0], depth + 1), known_divisor(expr->args[1], depth + 1));
    case te::ExprOp::kMul: {
      // Alignment never needs more than 64, so the factors are cut down before they could overflow.
      const int64_t a = std::gcd(known_divisor(expr->args[0], depth + 1), int64_t{64});
      const int64_t b = std::gcd(known_divisor(expr->args[1], depth + 1), int64_t{64});
      return a * b;
    }
    default:
      return 1;
  }
}

bool is_full(const te::Expr& mask) {
  return !mask || (mask->op == te::ExprOp::kIntImm && mask->int_value != 0);
}

}  // namespace

llvm::Type* KernelEmitter::memory_type(DType dtype, int lanes) {
  llvm::Type* type = dtype == DType::kBool ? builder_.getInt8Ty() : element_type(dtype);
  return lanes == 1 ? type : llvm::FixedVectorType::get(type, static_cast<unsigned>(lanes));
}

llvm::Value* KernelEmitter::to_memory(DType dtype, llvm::Value* value) {
  return dtype == DType::kBool ? builder_.CreateZExt(value, like(builder_.getInt8Ty(), value)) : value;
}

/// Any non-zero byte reads as true, so that foreign bytes cannot make a bool that is neither.
llvm::Value* KernelEmitter::from_memory(DType dtype, llvm::Value* value) {
  return dtype == DType::kBool ? builder_.CreateICmpNE(value, int_like(value, 0)) : value;
}

llvm::Value* KernelEmitter::buffer_pointer(const te::Buffer& buffer) {
  const auto it = frame_.buffers.find(buffer.get());
  TM_CHECK(it != frame_.buffers.end(), "buffer " + buffer->name + " is not defined");
  return it->second;
}

llvm::Value* KernelEmitter::element_pointer(llvm::Value* base, DType dtype, llvm::Value* index,
                                            bool in_bounds) {
  llvm::Type* type = memory_type(dtype, 1);
  return in_bounds ? builder_.CreateInBoundsGEP(type, base, index) : builder_.CreateGEP(type, base, index);
}

/// What is known of an address in `buffer`, all of whose allocations are aligned to 64 bytes once they are
/// that long.
llvm::Align KernelEmitter::alignment_of(const te::Buffer& buffer, const te::Expr& index) const {
  const int64_t element = static_cast<int64_t>(dtype_bytes(buffer->dtype));
  int64_t limit = 64;
  if (buffer->scope == te::Scope::kRegister) {
    const int64_t* extent = te::as_int(buffer->shape[0]);
    const int64_t bytes = extent == nullptr ? 0 : *extent * element;
    limit = bytes >= 64 ? 64 : bytes >= 16 ? 16 : element;
  }
  const int64_t divisor = std::gcd(known_divisor(index), int64_t{64}) * element;
  return llvm::Align(static_cast<uint64_t>(std::gcd(divisor, limit)));
}

/// index == base + stride * lane with a scalar base and a constant stride.
bool KernelEmitter::as_affine(const te::Expr& index, AffineIndex& result) {
  const te::ExprNode& node = *index;
  switch (node.op) {
    case te::ExprOp::kBroadcast:
      result = {node.args[0], 0};
      return true;
    case te::ExprOp::kIntImm:
      result = {te::int_imm(node.type.dtype, node.int_value), 0};
      return true;
    case te::ExprOp::kRamp: {
      const int64_t* stride = te::as_int(node.args[1]);
      if (stride == nullptr) return false;
      result = {node.args[0], *stride};
      return true;
    }
    case te::ExprOp::kAdd:
    case te::ExprOp::kSub: {
      AffineIndex a;
      AffineIndex b;
      if (!as_affine(node.args[0], a) || !as_affine(node.args[1], b)) return false;
      const bool add = node.op == te::ExprOp::kAdd;
      result = {add ? a.base + b.base : a.base - b.base, add ? a.stride + b.stride : a.stride - b.stride};
      return true;
    }
    case te::ExprOp::kMul: {
      AffineIndex a;
      AffineIndex b;
      if (!as_affine(node.args[0], a) || !as_affine(node.args[1], b)) return false;
      if (a.stride != 0) std::swap(a, b);
      const int64_t* factor = te::as_int(a.base);
      if (a.stride != 0 || (factor == nullptr && b.stride != 0)) return false;
      result = {a.base * b.base, factor == nullptr ? 0 : *factor * b.stride};
      return true;
    }
    default:
      return false;
  }
}

llvm::Value* KernelEmitter::emit_load(const te::ExprNode& node) {
  TM_CHECK(node.args.size() == 1, "load of " + node.buffer->name + " is not flat");
  llvm::Value* base = buffer_pointer(node.buffer);
  llvm::Value* mask = is_full(node.mask) ? nullptr : emit_expr(node.mask);
  if (node.type.lanes == 1) {
    llvm::Value* pointer = element_pointer(base, node.type.dtype, emit_expr(node.args[0]), mask == nullptr);
    if (mask != nullptr) return load_lanes(node, base, mask);
    return from_memory(node.type.dtype,
                       builder_.CreateAlignedLoad(memory_type(node.type.dtype, 1), pointer,
                                                  llvm::Align(dtype_bytes(node.type.dtype))));
  }
  AffineIndex index;
  if (as_affine(node.args[0], index)) {
    kept_.push_back(index.base);
    if (index.stride == 1 || (index.stride == 0 && mask == nullptr))
      return load_ramp(node, base, index, mask);
    if (index.stride == 2 && node.type.lanes >= kFewestShuffled && node.type.lanes % 2 == 0)
      return load_every_other(node, base, index, mask);
  }
  return load_lanes(node, base, mask);
}

/// Consecutive elements, or one element for all lanes.
llvm::Value* KernelEmitter::load_ramp(const te::ExprNode& node, llvm::Value* base, const AffineIndex& index,
                                      llvm::Value* mask) {
  const DType dtype = node.type.dtype;
  llvm::Value* pointer = element_pointer(base, dtype, emit_expr(index.base), mask == nullptr);
  if (index.stride == 0) {
    llvm::Value* element =
        builder_.CreateAlignedLoad(memory_type(dtype, 1), pointer, llvm::Align(dtype_bytes(dtype)));
    return builder_.CreateVectorSplat(static_cast<unsigned>(node.type.lanes), from_memory(dtype, element));
  }
  llvm::Type* type = memory_type(dtype, node.type.lanes);
  const llvm::Align align = alignment_of(node.buffer, index.base);
  if (mask == nullptr) return from_memory(dtype, builder_.CreateAlignedLoad(type, pointer, align));
  return from_memory(
      dtype, builder_.CreateMaskedLoad(type, pointer, align, mask, llvm::Constant::getNullValue(type)));
}

/// Two vectors of neighbours, of which the second ends with the last lane's element, so that nothing outside
/// of the lanes' range is touched; lanes are picked from both.
llvm::Value* KernelEmitter::load_every_other(const te::ExprNode& node, llvm::Value* base,
                                             const AffineIndex& index, llvm::Value* mask) {
  const DType dtype = node.type.dtype;
  const int lanes = node.type.lanes, half = lanes / 2;
  llvm::Type* type = memory_type(dtype, lanes);
  const llvm::Align align(dtype_bytes(dtype));
  llvm::Value* first = element_pointer(base, dtype, emit_expr(index.base), mask == nullptr);
  std::vector<int> picked;
  for (int lane = 0; lane < lanes; ++lane) picked.push_back(lane < half ? 2 * lane : 2 * lane + 1);
  const auto load_part = [&](int part) -> llvm::Value* {
    llvm::Value* pointer = element_pointer(
        first, dtype, builder_.getInt64(static_cast<uint64_t>(part) * static_cast<uint64_t>(lanes - 1)),
        mask == nullptr);
    if (mask == nullptr) return builder_.CreateAlignedLoad(type, pointer, align);
    llvm::Value* none = llvm::Constant::getNullValue(mask->getType());
    std::vector<int> spread(static_cast<size_t>(lanes), lanes);
    for (int lane = 0; lane < half; ++lane)
      spread[2 * static_cast<size_t>(lane) + static_cast<size_t>(part)] = lane + part * half;
    return builder_.CreateMaskedLoad(type, pointer, align, builder_.CreateShuffleVector(mask, none, spread),
                                     llvm::Constant::getNullValue(type));
  };
  llvm::Value* front = load_part(0);
  llvm::Value* back = load_part(1);
  return from_memory(dtype, builder_.CreateShuffleVector(front, back, picked));
}

/// Elements at unrelated addresses: a gather where that is one instruction or lanes may be off, else one by
/// one.
llvm::Value* KernelEmitter::load_lanes(const te::ExprNode& node, llvm::Value* base, llvm::Value* mask) {
  const DType dtype = node.type.dtype;
  llvm::Value* index = emit_expr(node.args[0]);
  const llvm::Align align(dtype_bytes(dtype));
  if (node.type.lanes == 1) {  // masked scalar: a vector of one
    index = builder_.CreateVectorSplat(1, index);
    mask = builder_.CreateVectorSplat(1, mask);
  }
  if (!mask && !(traits_.gather && dtype_bytes(dtype) >= 4)) {
    llvm::Value* result = llvm::PoisonValue::get(memory_type(dtype, node.type.lanes));
    for (uint64_t lane = 0; lane < static_cast<uint64_t>(node.type.lanes); ++lane) {
      llvm::Value* pointer = element_pointer(base, dtype, builder_.CreateExtractElement(index, lane), true);
      result = builder_.CreateInsertElement(
          result, builder_.CreateAlignedLoad(memory_type(dtype, 1), pointer, align), lane);
    }
    return from_memory(dtype, result);
  }
  llvm::Type* type =
      llvm::FixedVectorType::get(memory_type(dtype, 1), static_cast<unsigned>(node.type.lanes));
  llvm::Value* pointers = element_pointer(base, dtype, index, mask == nullptr);
  llvm::Value* result =
      builder_.CreateMaskedGather(type, pointers, align, mask, llvm::Constant::getNullValue(type));
  if (node.type.lanes == 1) result = builder_.CreateExtractElement(result, uint64_t{0});
  return from_memory(dtype, result);
}

void KernelEmitter::emit_store(const te::StmtNode& node) {
  TM_CHECK(node.indices.size() == 1, "store to " + node.buffer->name + " is not flat");
  memo_.clear();
  llvm::Value* base = buffer_pointer(node.buffer);
  const DType dtype = node.buffer->dtype;
  const int lanes = std::max(node.indices[0]->type.lanes, node.value->type.lanes);
  llvm::Value* value = to_memory(dtype, emit_expr(node.value));
  llvm::Value* mask = is_full(node.mask) ? nullptr : emit_expr(node.mask);
  if (lanes == 1 && mask == nullptr) {
    llvm::Value* pointer = element_pointer(base, dtype, emit_expr(node.indices[0]), true);
    builder_.CreateAlignedStore(value, pointer, llvm::Align(dtype_bytes(dtype)));
    return;
  }
  if (!value->getType()->isVectorTy())
    value = builder_.CreateVectorSplat(static_cast<unsigned>(lanes), value);
  if (mask != nullptr && !mask->getType()->isVectorTy()) {
    mask = builder_.CreateVectorSplat(static_cast<unsigned>(lanes), mask);
  }
  AffineIndex index;
  if (lanes > 1 && as_affine(node.indices[0], index) && index.stride == 1) {
    kept_.push_back(index.base);
    store_ramp(node, base, index, value, mask);
  } else {
    store_lanes(node, base, value, mask);
  }
}

void KernelEmitter::store_ramp(const te::StmtNode& node, llvm::Value* base, const AffineIndex& index,
                               llvm::Value* value, llvm::Value* mask) {
  llvm::Value* pointer = element_pointer(base, node.buffer->dtype, emit_expr(index.base), mask == nullptr);
  const llvm::Align align = alignment_of(node.buffer, index.base);
  if (mask == nullptr) {
    builder_.CreateAlignedStore(value, pointer, align);
  } else {
    builder_.CreateMaskedStore(value, pointer, align, mask);
  }
}

/// Lanes are stored in order: where two have one address, the last one stays.
void KernelEmitter::store_lanes(const te::StmtNode& node, llvm::Value* base, llvm::Value* value,
                                llvm::Value* mask) {
  const DType dtype = node.buffer->dtype;
  const llvm::Align align(dtype_bytes(dtype));
  llvm::Value* index = emit_expr(node.indices[0]);
  const unsigned lanes = llvm::cast<llvm::FixedVectorType>(value->getType())->getNumElements();
  if (!index->getType()->isVectorTy()) index = builder_.CreateVectorSplat(lanes, index);
  if (mask != nullptr) {
    builder_.CreateMaskedScatter(value, element_pointer(base, dtype, index, false), align, mask);
    return;
  }
  for (uint64_t lane = 0; lane < lanes; ++lane) {
    llvm::Value* pointer = element_pointer(base, dtype, builder_.CreateExtractElement(index, lane), true);
    builder_.CreateAlignedStore(builder_.CreateExtractElement(value, lane), pointer, align);
  }
}

}  // namespace tensormill::codegen
