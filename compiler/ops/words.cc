#include "compiler/ops/words.h"

#include "compiler/ops/reference_util.h"

namespace tensormill::ops {

bool read_words(const ir::Attrs& attrs, DType dtype) {
  const bool words = attr_bool(attrs, "words", false);
  if (words != (dtype == DType::kInt32)) {
    fail("attribute words is " + std::string(words ? "1" : "0") + ", input 0 has type " +
         std::string(dtype_name(dtype)) + ": words are int32");
  }
  return words;
}

Expr product_of(bool words, const Expr& data, const Expr& weight) {
  return words ? te::dot4(data, weight) : widen(data) * widen(weight);
}

Tensor bytes_of_words(const Tensor& words, bool is_signed) {
  Shape shape = words.shape();
  shape.push_back(kBytesPerWord);
  Tensor bytes(DType::kFloat64, shape);
  for (int64_t i = 0; i < words.num_elements(); ++i) {
    const uint32_t word = static_cast<uint32_t>(words.element_as_int(i));
    for (int64_t byte = 0; byte < kBytesPerWord; ++byte) {
      const uint8_t value = static_cast<uint8_t>(word >> (8 * byte));
      bytes.set_element(i * kBytesPerWord + byte, is_signed ? static_cast<int8_t>(value) : int{value});
    }
  }
  return bytes;
}

void evaluate_as_integers(const ir::ReferenceContext& context, const Tensor& data, const Tensor& weights,
                          void (*evaluate)(const ir::ReferenceContext&)) {
  Tensor& out = *context.outputs[0];
  const bool biased = context.inputs.size() > 2 && context.inputs[2] != nullptr;
  Tensor bias(DType::kFloat64, biased ? context.inputs[2]->shape() : Shape{});
  for (int64_t i = 0; biased && i < bias.num_elements(); ++i)
    bias.set_element(i, context.inputs[2]->element_as_double(i));
  Tensor sums(DType::kFloat64, out.shape());
  ir::Attrs attrs = context.attrs;
  attrs.set("words", int64_t{0});
  evaluate({attrs, {&data, &weights, biased ? &bias : nullptr}, {&sums}});
  // float64 holds sums of up to 2^37 products of bytes; what int32 does not hold wraps as its sums do.
  for (int64_t i = 0; i < out.num_elements(); ++i)
    out.set_element_int(i, static_cast<int32_t>(static_cast<int64_t>(sums.element_as_double(i))));
}

}  // namespace tensormill::ops
