/// lookup: what a table has for each byte.
#include "compiler/ops/parts.h"
#include "compiler/ops/reference_util.h"
#include "compiler/ops/te_util.h"
#include "compiler/ops/type_rules.h"

namespace tensormill::ops::lookup_ops {

std::vector<ir::OpDef> family();

namespace {

constexpr DTypeSet kBytes = set_of(DType::kInt8) | set_of(DType::kUInt8);

te::ByteTable table_of(const ir::Attrs& attrs) {
  if (!attrs.has("table")) fail("attribute table is missing");
  te::ByteTable table{};
  const ir::Ints bytes = attr_ints(attrs, "table", table.size(), 0, 0, 255);
  for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<uint8_t>(bytes[i]);
  return table;
}

std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  const ir::ValueType& x = input_of(context, 0, kBytes);
  const DType to = attr_dtype(context.attrs, "to");
  if ((kBytes & set_of(to)) == 0)
    fail("attribute to is " + std::string(dtype_name(to)) + ", expected i8 or u8");
  static_cast<void>(table_of(context.attrs));
  return {made_type(to, x.shape)};
}

void reference(const ir::ReferenceContext& context) {
  const te::ByteTable table = table_of(context.attrs);
  const auto* from = static_cast<const uint8_t*>(context.inputs[0]->data());
  auto* to = static_cast<uint8_t*>(context.outputs[0]->data());
  for (int64_t i = 0; i < context.outputs[0]->num_elements(); ++i) to[i] = table[from[i]];
}

TeOutputs compute(const ir::ComputeContext& context) {
  const ir::ValueType& type = context.output_types[0];
  const auto table = std::make_shared<const te::ByteTable>(table_of(context.attrs));
  return {compute_safe(context.name, type.shape, type.dtype, [&](const std::vector<Expr>& axes) {
    // A conversion between integers of one width keeps the bits.
    const Expr index = te::cast(DType::kUInt8, te::read(context.inputs[0], axes));
    return te::cast(type.dtype, te::lookup(index, table));
  })};
}

}  // namespace

std::vector<ir::OpDef> family() {
  ir::OpDef def;
  def.name = "lookup";
  def.pattern = ir::Pattern::kElementwise;
  def.infer = &infer;
  def.reference = &reference;
  def.part = &part_of_elementwise;
  def.compute = &compute;
  def.doc =
      "what attribute table (256 integers from 0 to 255) has for each byte of x (int8 or uint8), both as "
      "bits of uint8, as those of attribute to (int8 or uint8)";
  return {def};
}

}  // namespace tensormill::ops::lookup_ops
