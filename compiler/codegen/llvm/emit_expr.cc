#include <numeric>

#include "compiler/codegen/llvm/kernel_emitter.h"
#include "compiler/te/op_class.h"
#include "compiler/te/text.h"
#include "runtime/base/error.h"

namespace tensormill::codegen {

namespace {

/// `count` lanes of a vector from `first` on; those past its end are undefined.
llvm::Value* lanes_of(llvm::IRBuilder<>& builder, llvm::Value* vector, unsigned first, unsigned count) {
  const unsigned all = llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements();
  std::vector<int> lanes;
  for (unsigned i = first; i < first + count; ++i) lanes.push_back(i < all ? static_cast<int>(i) : -1);
  return builder.CreateShuffleVector(vector, lanes);
}

}  // namespace

llvm::Type* KernelEmitter::element_type(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return builder_.getInt1Ty();
    case DType::kFloat32:
      return builder_.getFloatTy();
    case DType::kFloat64:
      return builder_.getDoubleTy();
    default:
      return builder_.getIntNTy(static_cast<unsigned>(dtype_info(dtype).bits));
  }
}

llvm::Type* KernelEmitter::value_type(te::Type type) {
  llvm::Type* element = element_type(type.dtype);
  return type.lanes == 1 ? element : llvm::FixedVectorType::get(element, static_cast<unsigned>(type.lanes));
}

llvm::Type* KernelEmitter::like(llvm::Type* scalar, llvm::Value* shape) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(shape->getType());
  return vector == nullptr ? scalar : llvm::FixedVectorType::get(scalar, vector->getNumElements());
}

llvm::Constant* KernelEmitter::int_like(llvm::Value* shape, int64_t value) {
  const unsigned bits = shape->getType()->getScalarSizeInBits();
  return llvm::ConstantInt::get(like(builder_.getIntNTy(bits), shape), static_cast<uint64_t>(value), true);
}

llvm::Constant* KernelEmitter::float_like(llvm::Value* shape, double value) {
  return llvm::ConstantFP::get(shape->getType(), value);
}

llvm::Value* KernelEmitter::intrinsic(llvm::Intrinsic::ID id, std::initializer_list<llvm::Value*> args) {
  return builder_.CreateIntrinsic(id, {(*args.begin())->getType()}, std::vector<llvm::Value*>(args));
}

llvm::Value* KernelEmitter::by_parts(const std::vector<llvm::Value*>& args, unsigned part, const Emit& emit) {
  const unsigned lanes = llvm::cast<llvm::FixedVectorType>(args[0]->getType())->getNumElements();
  llvm::Value* result = nullptr;
  for (unsigned first = 0; first < lanes; first += part) {
    std::vector<llvm::Value*> some;
    for (llvm::Value* arg : args) some.push_back(lanes_of(builder_, arg, first, part));
    llvm::Value* made = emit(some);
    if (result == nullptr) {
      result = made;
      continue;
    }
    std::vector<int> both(first + part);
    std::iota(both.begin(), both.end(), 0);
    result = builder_.CreateShuffleVector(result, lanes_of(builder_, made, 0, first), both);
  }
  return lanes_of(builder_, result, 0, lanes);
}

llvm::Value* KernelEmitter::emit_root(const te::Expr& expr) {
  memo_.clear();
  return emit_expr(expr);
}

llvm::Value* KernelEmitter::emit_expr(const te::Expr& expr) {
  const auto found = memo_.find(expr.get());
  if (found != memo_.end()) return found->second;
  llvm::Value* value = emit_new(expr);
  memo_[expr.get()] = value;
  return value;
}

llvm::Value* KernelEmitter::emit_new(const te::Expr& expr) {
  const te::ExprNode& node = *expr;
  switch (node.op) {
    case te::ExprOp::kIntImm:
    case te::ExprOp::kFloatImm:
      return emit_constant(node);
    case te::ExprOp::kVar: {
      const auto it = frame_.vars.find(node.var.get());
      TM_CHECK(it != frame_.vars.end(), "variable " + node.var->name + " is not defined");
      return it->second;
    }
    case te::ExprOp::kLoad:
      return emit_load(node);
    case te::ExprOp::kRamp:
      return emit_ramp(node);
    case te::ExprOp::kCheckIndex:
      return emit_check_index(node);
    case te::ExprOp::kLt:
      if (llvm::Value* mask = emit_lane_limit(node)) return mask;
      break;
    case te::ExprOp::kAdd:
      if (llvm::Value* sum = emit_dot4_sum(node)) return sum;
      break;
    case te::ExprOp::kDot4: {
      llvm::Value* a = emit_expr(node.args[0]);
      return emit_dot4(a, emit_expr(node.args[1]), int_like(a, 0));
    }
    default:
      break;
  }
  switch (te::op_class(node.op)) {
    case te::OpClass::kLaneReduce:
      return emit_lane_reduce(node);
    case te::OpClass::kMemory:
    case te::OpClass::kVectorMath:
      throw InternalError("operator " + std::string(te::expr_op_name(node.op)) +
                          " is not legal at code generation: " + te::print(expr));
    default:
      break;
  }
  std::vector<llvm::Value*> args;
  for (const te::Expr& arg : node.args) args.push_back(emit_expr(arg));
  const DType arg_dtype = node.args[0]->type.dtype;
  switch (node.op) {
    case te::ExprOp::kBroadcast:
      return node.type.lanes == 1
                 ? args[0]
                 : builder_.CreateVectorSplat(static_cast<unsigned>(node.type.lanes), args[0]);
    case te::ExprOp::kCast:
      return emit_cast(arg_dtype, node.type.dtype, args[0]);
    case te::ExprOp::kReinterpret:
      return emit_reinterpret(arg_dtype, node.type.dtype, args[0]);
    case te::ExprOp::kLookup:
      return emit_lookup(*node.table, args[0]);
    case te::ExprOp::kSelect:
      return builder_.CreateSelect(args[0], args[1], args[2]);
    default:
      return emit_arithmetic(node.op, arg_dtype, args);
  }
}

llvm::Value* KernelEmitter::emit_constant(const te::ExprNode& node) {
  llvm::Type* type = value_type(node.type);
  switch (node.type.dtype) {
    case DType::kFloat32:
    case DType::kFloat64:
      return llvm::ConstantFP::get(type, node.float_value);
    case DType::kFloat16:
      return llvm::ConstantInt::get(type, float_to_half(static_cast<float>(node.float_value)));
    case DType::kBFloat16:
      return llvm::ConstantInt::get(type, float_to_bfloat16(static_cast<float>(node.float_value)));
    default:
      return llvm::ConstantInt::get(type, static_cast<uint64_t>(node.int_value), true);
  }
}

llvm::Value* KernelEmitter::emit_ramp(const te::ExprNode& node) {
  llvm::Value* base = emit_expr(node.args[0]);
  llvm::Value* stride = emit_expr(node.args[1]);
  TM_CHECK(base->getType()->isIntegerTy(), "a ramp of floats");
  std::vector<llvm::Constant*> lanes;
  for (int lane = 0; lane < node.type.lanes; ++lane) lanes.push_back(int_like(base, lane));
  const unsigned count = static_cast<unsigned>(node.type.lanes);
  llvm::Value* steps =
      builder_.CreateMul(builder_.CreateVectorSplat(count, stride), llvm::ConstantVector::get(lanes));
  return builder_.CreateAdd(builder_.CreateVectorSplat(count, base), steps);
}

llvm::Value* KernelEmitter::emit_lane_reduce(const te::ExprNode& node) {
  llvm::Value* value = emit_expr(node.args[0]);
  int lanes = node.args[0]->type.lanes;
  TM_CHECK((lanes & (lanes - 1)) == 0, "lane reduction of " + std::to_string(lanes) + " lanes");
  const te::ExprOp step = te::lane_reduce_step(node.op);
  while (lanes > 1) {
    lanes /= 2;
    std::vector<int> low;
    std::vector<int> high;
    for (int i = 0; i < lanes; ++i) {
      low.push_back(i);
      high.push_back(i + lanes);
    }
    value = emit_arithmetic(
        step, node.type.dtype,
        {builder_.CreateShuffleVector(value, low), builder_.CreateShuffleVector(value, high)});
  }
  return value->getType()->isVectorTy() ? builder_.CreateExtractElement(value, uint64_t{0}) : value;
}

/// ramp(base, 1) < broadcast(limit), the mask of a tail, compares small lane numbers with what is left of the
/// limit instead of int64 vectors. Null when the comparison is of another form.
llvm::Value* KernelEmitter::emit_lane_limit(const te::ExprNode& node) {
  const te::Type type = node.args[0]->type;
  AffineIndex index;
  AffineIndex limit;
  if (type.dtype != DType::kInt64 || type.lanes == 1 || !as_affine(node.args[0], index) ||
      !as_affine(node.args[1], limit) || index.stride != 1 || limit.stride != 0) {
    return nullptr;
  }
  kept_.push_back(index.base);
  kept_.push_back(limit.base);
  llvm::Value* begin = emit_expr(index.base);
  llvm::Value* end = emit_expr(limit.base);
  const unsigned lanes = static_cast<unsigned>(type.lanes);
  llvm::Value* left = builder_.CreateSelect(builder_.CreateICmpSLT(begin, end),
                                            builder_.CreateSub(end, begin), builder_.getInt64(0));
  left = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, left, builder_.getInt64(lanes));
  left = builder_.CreateVectorSplat(lanes, builder_.CreateTrunc(left, builder_.getInt32Ty()));
  std::vector<llvm::Constant*> numbers;
  for (unsigned lane = 0; lane < lanes; ++lane) numbers.push_back(builder_.getInt32(lane));
  return builder_.CreateICmpULT(llvm::ConstantVector::get(numbers), left);
}

/// Branch-free: the function ends with an error if any index was out of range, and until then works on index
/// 0.
llvm::Value* KernelEmitter::emit_check_index(const te::ExprNode& node) {
  llvm::Value* index = emit_expr(node.args[0]);
  llvm::Value* extent = emit_expr(node.args[1]);
  if (index->getType()->isVectorTy() && !extent->getType()->isVectorTy()) {
    extent = builder_.CreateVectorSplat(static_cast<unsigned>(node.type.lanes), extent);
  }
  if (frame_.failed == nullptr) {
    frame_.failed = entry_alloca(builder_.getInt1Ty(), "failed");
    frame_.bad_index = entry_alloca(builder_.getInt64Ty(), "bad_index");
    const llvm::IRBuilderBase::InsertPointGuard guard(builder_);
    builder_.SetInsertPoint(frame_.entry);
    builder_.CreateStore(builder_.getFalse(), frame_.failed);
    builder_.CreateStore(builder_.getInt64(0), frame_.bad_index);
  }
  // Unsigned, so that negative indices are too large.
  llvm::Value* bad = builder_.CreateICmpUGE(index, extent);
  llvm::Value* failed = builder_.CreateLoad(builder_.getInt1Ty(), frame_.failed);
  llvm::Value* first = builder_.CreateLoad(builder_.getInt64Ty(), frame_.bad_index);
  const unsigned lanes = static_cast<unsigned>(node.type.lanes);
  for (uint64_t lane = 0; lane < lanes; ++lane) {
    llvm::Value* lane_bad = lanes == 1 ? bad : builder_.CreateExtractElement(bad, lane);
    llvm::Value* lane_index = lanes == 1 ? index : builder_.CreateExtractElement(index, lane);
    first =
        builder_.CreateSelect(builder_.CreateAnd(lane_bad, builder_.CreateNot(failed)), lane_index, first);
    failed = builder_.CreateOr(failed, lane_bad);
  }
  builder_.CreateStore(failed, frame_.failed);
  builder_.CreateStore(first, frame_.bad_index);
  return builder_.CreateSelect(bad, int_like(index, 0), index);
}

llvm::Value* KernelEmitter::emit_arithmetic(te::ExprOp op, DType dtype,
                                            const std::vector<llvm::Value*>& args) {
  if (!is_float(dtype)) return emit_integer(op, dtype, args[0], args.size() > 1 ? args[1] : nullptr);
  if (dtype == DType::kFloat32 || dtype == DType::kFloat64) return emit_float(op, dtype, args);
  return emit_narrow_float(op, dtype, args);
}

}  // namespace tensormill::codegen
