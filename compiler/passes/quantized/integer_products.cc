// Convolutions and products of dequantized data by dequantized constants are computed on the integers, where
// the target adds products of four bytes in one instruction: conv((q - z) sx, w sw) = sx sw (sum of q w - z
// sum of w), of which the part that does not depend on q goes into the bias. The sums are exact in int32.
// What they are multiplied by, and divided by where a quantization follows, is one factor of float32, so that
// a result may differ by a quantum from the division carried out on float32 sums, where that lies at the
// middle of two (as in Jacob et al., "Quantization and Training of Neural Networks for Efficient
// Integer-Arithmetic-Only Inference", 2018, section 2.2, with a factor of float32).
//
// Data of int8 is moved to uint8, in the quantization that makes it where it comes from one, or in the table
// that it is looked up in. Weights that do not fit int8, bytes less a zero point that is not their middle,
// are moved too: that times the sum of the data is taken off the result.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

#include "compiler/ir/patch.h"
#include "compiler/ops/map_layout.h"
#include "compiler/ops/type_rules.h"
#include "compiler/passes/layouts/pack_blocked.h"
#include "compiler/passes/match.h"
#include "compiler/passes/pass.h"
#include "compiler/passes/quantized/quantized.h"
#include "compiler/passes/values/constant_value.h"
#include "compiler/passes/values/value_facts.h"

namespace tensormill::passes {

namespace {

/// Products of a byte and one of int8, and of two bytes less their zero points, of which int32 holds the sum
/// in any case, with a bias of 2^24 at most (match_bias): (2^31 - 2^24) / (255 * 128) and / (255 * 255).
constexpr int64_t kMostProducts = 65278, kMostOffsetProducts = 32767;
constexpr int64_t kToUnsigned = 128;

/// What is done with a product until it is divided by a constant.
struct Tail {
  ir::ValueId bias = ir::kAbsent;  ///< added before the rest
  std::vector<const ir::Node*> monotone;
  float divisor = 1;
  ir::ValueId end = ir::kAbsent;  ///< the value that all of it gives
};

class IntegerProducts {
public:
  IntegerProducts(const ir::Graph& graph, const PassContext& context)
      : graph_(graph),
        block_(context.facts.lanes(32)),
        patch_(graph, "integer_products"),
        uses_(graph.uses()),
        reads_(count_reads(graph)) {}

  ir::Graph run() {
    for (const ir::Node& node : graph_.nodes()) {
      if (node.op == "conv" && !ops::is_channels_last(node.attrs))
        is_exact(node) ? visit_exact_conv(node) : visit_conv(node);
      if (node.op == "matmul") is_exact(node) ? visit_exact_matmul(node) : visit_matmul(node);
      if (node.op == "div") visit_division(node);
    }
    return patch_.apply();
  }

private:
  const ir::SymShape& shape(ir::ValueId value) const { return graph_.value(value).type.shape; }

  /// The only reader of `value`, or null.
  const ir::Node* reader(ir::ValueId value) const {
    const std::vector<ir::NodeId>& readers = uses_[static_cast<size_t>(value)];
    return reads_[static_cast<size_t>(value)] == 1 && readers.size() == 1 ? &graph_.node(readers[0])
                                                                          : nullptr;
  }

  /// The constant by which `node` divides, or 0.
  float divisor_of(const ir::Node& node) const {
    const std::optional<double> constant =
        node.op == "div" ? scalar_of(graph_, node.inputs[1]) : std::nullopt;
    const bool usable = constant && *constant > 0 && std::isfinite(*constant) &&
                        shape(node.outputs[0]) == shape(node.inputs[0]);
    return usable ? static_cast<float>(*constant) : 0;
  }

  /// Follows the readers of `product`. `columns`: a constant of so many values in the last dimension may be
  /// added.
  Tail tail_of(ir::ValueId product, int64_t columns) const {
    Tail tail;
    tail.end = product;
    const ir::Node* next = reader(product);
    if (columns > 0 && next != nullptr && next->op == "add") {
      const ir::ValueId other = next->inputs[next->inputs[0] == product ? 1 : 0];
      const ir::SymShape& added = shape(other);
      if (!added.empty() && added.back() == columns && num_elements(added) == columns &&
          shape(next->outputs[0]) == shape(product) && match_bias(graph_, other, ones(columns))) {
        tail.bias = other;
        tail.end = next->outputs[0];
        next = reader(tail.end);
      }
    }
    Tail whole = tail;
    for (; next != nullptr && next->op == "relu"; next = reader(whole.end)) {
      whole.monotone.push_back(next);
      whole.end = next->outputs[0];
    }
    const float divisor = next == nullptr ? 0 : divisor_of(*next);
    if (divisor == 0 || next->inputs[0] != whole.end) return tail;
    whole.divisor = divisor;
    whole.end = next->outputs[0];
    return whole;
  }

  static Tensor ones(int64_t count) {
    Tensor result(DType::kFloat32, {count});
    for (int64_t i = 0; i < count; ++i) result.set_element(i, 1);
    return result;
  }

  /// `values` of float32 as a constant of `along`, or of one element where all are equal.
  ir::ValueId factor(const ir::Node& node, const Tensor& values, const Shape& along) {
    const std::span<const float> all = values.values<float>();
    const bool equal = std::adjacent_find(all.begin(), all.end(), std::not_equal_to<>()) == all.end();
    if (!equal)
      return patch_.add_constant(graph_.value(node.outputs[0]).name + ".factor", values.reshaped(along));
    return patch_.add_constant(graph_.value(node.outputs[0]).name + ".factor",
                               Tensor::from<float>({}, all.subspan(0, 1)));
  }

  /// `unit` times the int32 sums, and the rest of the tail.
  void finish(const ir::Node& node, ir::ValueId sums, const Tensor& unit, const std::optional<Tensor>& bias,
              const Tail& tail, const Shape& along) {
    Tensor factors = unit.clone();
    for (float& each : factors.values<float>()) each /= tail.divisor;
    const ir::ValueId exact = patch_.add_node("cast", {sums}, {{"to", DType::kFloat32}}, node.origins)[0];
    ir::ValueId value = patch_.add_node("mul", {exact, factor(node, factors, along)}, {}, node.origins)[0];
    if (bias) {
      Tensor shift = bias->clone();
      for (float& each : shift.values<float>()) each /= tail.divisor;
      value = patch_.add_node("add", {value, factor(node, shift, along)}, {}, node.origins)[0];
    }
    for (const ir::Node* step : tail.monotone)
      value = patch_.add_node(step->op, {value}, step->attrs, step->origins)[0];
    patch_.replace(tail.end, value);
  }

  /// Whether float32 has all digits of the factors, also once they are divided.
  static bool are_normal(const Tensor& factors, float divisor) {
    const auto is_normal = [&](float each) { return std::isnormal(each) && std::isnormal(each / divisor); };
    const std::span<const float> all = factors.values<float>();
    return std::all_of(all.begin(), all.end(), is_normal);
  }

  /// unit[i] = data's scale times weight's scale i.
  static Tensor unit_of(const Dequantized& x, const Tensor& scales) {
    Tensor unit = scales.clone();
    for (float& each : unit.values<float>()) each *= x.scale;
    return unit;
  }

  /// `q` as uint8, its values and zero point moved by 128 where it is int8.
  ir::ValueId as_unsigned(ir::ValueId q) {
    if (graph_.value(q).type.dtype == DType::kUInt8) return q;
    const auto [found, is_new] = unsigned_.emplace(q, ir::kAbsent);
    if (!is_new) return found->second;
    if (const ir::Node* lookup = match(graph_, q, "lookup")) {
      found->second = unsigned_lookup(*lookup);
      read_unsigned(q, found->second);
      return found->second;
    }
    const ir::Node* made = match(graph_, q, "cast");
    const std::vector<std::string> origins = made == nullptr ? std::vector<std::string>() : made->origins;
    const bool integral = made != nullptr && is_integral(made->inputs[0]);
    const ir::ValueId wide =
        integral ? made->inputs[0] : patch_.add_node("cast", {q}, {{"to", DType::kInt32}}, origins)[0];
    const DType dtype = patch_.value(wide).type.dtype;
    ir::ValueId moved = patch_.add_node("add", {wide, number(dtype)}, {}, origins)[0];
    // The int8 of a NaN is 0, whose place among those that are moved is another one.
    if (integral) {
      const ir::ValueId is_nan = patch_.add_node("is_nan", {wide}, {}, origins)[0];
      moved = patch_.add_node("where", {is_nan, number(dtype), moved}, {}, origins)[0];
    }
    found->second = patch_.add_node("cast", {moved}, {{"to", DType::kUInt8}}, origins)[0];
    if (integral) read_unsigned(q, found->second);
    return found->second;
  }

  /// What is looked up, from a table whose values are moved.
  ir::ValueId unsigned_lookup(const ir::Node& lookup) {
    ir::Ints table = lookup.attrs.ints_of("table");
    // Of the bits of int8, plus 128 is another highest one.
    for (int64_t& byte : table) byte ^= kToUnsigned;
    return patch_.add_node("lookup", lookup.inputs, {{"table", table}, {"to", DType::kUInt8}},
                           lookup.origins)[0];
  }

  /// A rounded value, or that plus whole numbers: casts of it saturate, and do not round.
  bool is_integral(ir::ValueId value) const {
    if (graph_.value(value).type.dtype != DType::kFloat32) return false;
    if (!is_whole(graph_, value)) return false;
    if (const ir::Node* add = match(graph_, value, "add")) value = add->inputs[0];
    return match(graph_, value, "round") != nullptr;
  }

  ir::ValueId number(DType dtype) {
    Tensor constant(dtype, {});
    constant.set_element(0, kToUnsigned);
    return patch_.add_constant("to_unsigned", constant);
  }

  /// Readers that widen the int8 value `q` to float32 read the uint8 one, so that `q` need not be stored.
  void read_unsigned(ir::ValueId q, ir::ValueId moved) {
    for (const ir::NodeId id : uses_[static_cast<size_t>(q)]) {
      const ir::Node& cast = graph_.node(id);
      if (cast.op != "cast" || graph_.value(cast.outputs[0]).type.dtype != DType::kFloat32) continue;
      const ir::ValueId wide = patch_.add_node("cast", {moved}, cast.attrs, cast.origins)[0];
      patch_.replace(cast.outputs[0],
                     patch_.add_node("sub", {wide, number(DType::kFloat32)}, {}, cast.origins)[0]);
    }
  }

  /// The zero point of as_unsigned(x.q).
  int64_t unsigned_zero(const Dequantized& x) const {
    const bool moved = graph_.value(x.q).type.dtype == DType::kInt8;
    return static_cast<int64_t>(x.zero) + (moved ? kToUnsigned : 0);
  }

  /// The convolutions that alter_layout takes to blocks of words.
  bool takes_blocks(const ir::Node& node) const {
    const ir::SymShape &x = shape(node.inputs[0]), &w = shape(node.inputs[1]);
    if (!x.at(1).is_constant() || !w.is_constant()) return false;
    const int64_t groups = ops::attr_int(node.attrs, "group", 1);
    if (w.size() != 4 || num_elements(w) == 0 || num_elements(shape(node.outputs[0])) == 0) return false;
    if (num_elements(w) / w[0] > kMostProducts || block_ % 4 != 0) return false;
    return groups == 1 ? x[1] >= block_ : x[1] / groups % block_ == 0 && w[0] / groups % block_ == 0;
  }

  /// Whether what the weights are moved by can be taken off again, and is little beside the convolution: it
  /// costs as much as one block of outputs does.
  bool takes_offset(const ir::Node& node, const OffsetBytes& bytes) const {
    constexpr int64_t kFewestBlocks = 4;
    const bool is_whole = ops::attr_int(node.attrs, "group", 1) == 1;
    const int64_t products = bytes.w.num_elements() / bytes.w.shape()[0];
    return !bytes.offset ||
           (is_whole && products <= kMostOffsetProducts && bytes.w.shape()[0] >= kFewestBlocks * block_);
  }

  /// The sums of q (w - offset) from those of q w: less the offset times the sum of q under the window, which
  /// a convolution by ones gives. Each step has the whole picture as an operand, so that it is done where
  /// that is made: sums - offset s = offset (sums - s) + (1 - offset) sums. What wraps on the way is in the
  /// result again.
  ir::ValueId less_offset(const ir::Node& node, ir::ValueId sums, ir::ValueId data, const ir::Attrs& attrs,
                          const OffsetBytes& bytes) {
    if (!bytes.offset) return sums;
    const std::string& name = graph_.value(node.inputs[1]).name;
    Shape window = bytes.w.shape();
    const Shape along{std::exchange(window[0], 1), 1, 1};
    Tensor ones(DType::kInt8, window), rest = bytes.offset->clone();
    for (int64_t i = 0; i < ones.num_elements(); ++i) ones.set_element_int(i, 1);
    for (int32_t& each : rest.values<int32_t>()) each = 1 - each;
    const auto constant = [&](const char* what, const Tensor& tensor) {
      return patch_.add_constant(name + what, tensor);
    };
    const auto pair = [&](const char* op, ir::ValueId a, ir::ValueId b) {
      return patch_.add_node(op, {a, b}, {}, node.origins)[0];
    };
    const ir::ValueId seen =
        patch_.add_node("conv_integer", {data, constant(".ones", ones)}, attrs, node.origins)[0];
    const ir::ValueId moved =
        pair("mul", pair("sub", sums, seen), constant(".offset", bytes.offset->reshaped(along)));
    return pair("add", moved, pair("mul", sums, constant(".rest", rest.reshaped(along))));
  }

  void visit_conv(const ir::Node& node) {
    if (graph_.value(node.outputs[0]).type.dtype != DType::kFloat32 || !takes_blocks(node)) return;
    const std::optional<Dequantized> x = match_dequantized(graph_, node.inputs[0]);
    const std::optional<DequantizedWeights> w = x ? match_weights(graph_, node.inputs[1], 0) : std::nullopt;
    if (!w || !takes_offset(node, w->bytes)) return;
    const Tensor unit = unit_of(*x, w->scale);
    std::optional<DequantizedBias> bias;
    if (node.inputs.size() > 2 && node.inputs[2] != ir::kAbsent) {
      bias = match_bias(graph_, node.inputs[2], unit);
      if (!bias) return;
    }
    const Tail tail = tail_of(node.outputs[0], 0);
    if (!are_normal(unit, tail.divisor)) return;
    ir::Attrs attrs = node.attrs;
    attrs.set("x_zero", unsigned_zero(*x));
    const std::string& name = graph_.value(node.inputs[1]).name;
    std::vector<ir::ValueId> inputs = {as_unsigned(x->q), patch_.add_constant(name + ".integer", w->bytes.w)};
    if (bias && bias->integer) inputs.push_back(patch_.add_constant(name + ".bias", *bias->integer));
    const ir::ValueId sums = less_offset(
        node, patch_.add_node("conv_integer", inputs, attrs, node.origins)[0], inputs[0], attrs, w->bytes);
    finish(node, sums, unit, bias && !bias->integer ? std::optional<Tensor>(bias->value) : std::nullopt, tail,
           {1, unit.num_elements(), 1, 1});
  }

  /// Products by a matrix whose rows are taken by fours.
  bool takes_words(const ir::Node& node) const {
    const ir::SymShape& rows = shape(node.inputs[0]);
    if (!rows.empty() && !rows.back().is_constant()) return false;
    const bool transposes_x = ops::attr_bool(node.attrs, "transpose_a", false);
    return !rows.empty() && rows.back() % 4 == 0 && rows.back() != 0 && rows.back() <= kMostProducts &&
           shape(node.inputs[1]).size() == 2 && num_elements(shape(node.outputs[0])) != 0 &&
           !(rows.size() > 1 && transposes_x);
  }

  /// Whether int32 holds the sums of the products with what the bytes stand for.
  bool holds_sums(const ir::Node& node, const OffsetBytes& bytes) const {
    return !bytes.offset || shape(node.inputs[0]).back() <= kMostOffsetProducts;
  }

  void visit_matmul(const ir::Node& node) {
    if (graph_.value(node.outputs[0]).type.dtype != DType::kFloat32 || !takes_words(node)) return;
    const bool transposed = ops::attr_bool(node.attrs, "transpose_b", false);
    const std::optional<Dequantized> x = match_dequantized(graph_, node.inputs[0]);
    const std::optional<DequantizedWeights> w =
        x ? match_weights(graph_, node.inputs[1], transposed ? 0 : 1) : std::nullopt;
    if (!w || !holds_sums(node, w->bytes)) return;
    const Tensor unit = unit_of(*x, w->scale);
    const int64_t columns = unit.num_elements();
    const Tail tail = tail_of(node.outputs[0], columns);
    if (!are_normal(unit, tail.divisor)) return;
    std::optional<DequantizedBias> bias;
    if (tail.bias != ir::kAbsent) bias = match_bias(graph_, tail.bias, unit);
    Tensor shift(DType::kInt32, {columns});
    const Tensor column_sums = sums_of_columns(w->bytes, transposed);
    for (int64_t j = 0; j < columns; ++j) {
      const int64_t own = bias && bias->integer ? bias->integer->element_as_int(j) : 0;
      shift.set_element_int(j, static_cast<int32_t>(own - unsigned_zero(*x) * column_sums.element_as_int(j)));
    }
    const ir::ValueId sums = packed_product(node, as_unsigned(x->q), w->bytes, transposed, shift);
    finish(node, sums, unit, bias && !bias->integer ? std::optional<Tensor>(bias->value) : std::nullopt, tail,
           {columns});
  }

  /// Products of integers: in int32, or in a type that holds their sums.
  bool is_exact(const ir::Node& node) const {
    return graph_.value(node.outputs[0]).type.dtype == DType::kInt32 ||
           ops::attr_bool(node.attrs, "exact", false);
  }

  /// Sums that float32 holds, as the importer writes them, perhaps of a part of the channels.
  void visit_exact_conv(const ir::Node& node) {
    if (!takes_blocks(node) || (node.inputs.size() > 2 && node.inputs[2] != ir::kAbsent)) return;
    const ir::Node* part = match(graph_, node.inputs[0], "slice");
    const std::optional<Centered> x =
        match_centered(graph_, part == nullptr ? node.inputs[0] : part->inputs[0]);
    const std::optional<OffsetBytes> w =
        x && x->known ? match_bytes(graph_, node.inputs[1], 0) : std::nullopt;
    if (!w || !takes_offset(node, *w)) return;
    const int64_t zero = *x->known + (graph_.value(x->q).type.dtype == DType::kInt8 ? kToUnsigned : 0);
    if (zero < 0 || zero > 255) return;
    ir::ValueId data = as_unsigned(x->q);
    if (part != nullptr) data = patch_.add_node("slice", {data}, part->attrs, part->origins)[0];
    ir::Attrs attrs = node.attrs;
    attrs.set("x_zero", zero);
    const ir::ValueId weights = patch_.add_constant(graph_.value(node.inputs[1]).name + ".integer", w->w);
    const ir::ValueId sums = less_offset(
        node, patch_.add_node("conv_integer", {data, weights}, attrs, node.origins)[0], data, attrs, *w);
    patch_.replace(
        node.outputs[0],
        patch_.add_node("cast", {sums}, {{"to", graph_.value(node.outputs[0]).type.dtype}}, node.origins)[0]);
  }

  /// (q - zero) w = q w - zero times the columns' sums, whatever the zero point is.
  void visit_exact_matmul(const ir::Node& node) {
    if (graph_.value(node.outputs[0]).type.dtype != DType::kInt32 || !takes_words(node)) return;
    const bool transposed = ops::attr_bool(node.attrs, "transpose_b", false);
    const std::optional<Centered> x = match_centered(graph_, node.inputs[0]);
    const std::optional<OffsetBytes> w =
        x ? match_bytes(graph_, node.inputs[1], transposed ? 0 : 1) : std::nullopt;
    if (!w || !holds_sums(node, *w)) return;
    const Tensor column_sums = sums_of_columns(*w, transposed);
    const int64_t columns = column_sums.num_elements();
    const int64_t moved = graph_.value(x->q).type.dtype == DType::kInt8 ? kToUnsigned : 0;
    Tensor shift(DType::kInt32, {columns});
    for (int64_t j = 0; j < columns; ++j) {
      const int64_t zero = moved + x->known.value_or(0);
      shift.set_element_int(j, static_cast<int32_t>(-zero * column_sums.element_as_int(j)));
    }
    ir::ValueId sums = packed_product(node, as_unsigned(x->q), *w, transposed, shift);
    if (!x->known) {
      const ir::ValueId all = patch_.add_constant(graph_.value(node.inputs[1]).name + ".sums", column_sums);
      const ir::ValueId zero = patch_.add_node("reshape", {x->zero}, {{"shape", Shape{1}}}, node.origins)[0];
      const ir::ValueId product = patch_.add_node("mul", {zero, all}, {}, node.origins)[0];
      sums = patch_.add_node("sub", {sums, product}, {}, node.origins)[0];
    }
    patch_.replace(node.outputs[0], sums);
  }

  /// Of w - offset.
  static Tensor sums_of_columns(const OffsetBytes& bytes, bool transposed) {
    const Tensor& w = bytes.w;
    const int64_t depth = w.shape()[transposed ? 1 : 0], columns = w.shape()[transposed ? 0 : 1];
    Tensor sums = Tensor::zeros(DType::kInt32, {columns});
    for (int64_t j = 0; j < columns; ++j) {
      int64_t sum = bytes.offset ? -depth * bytes.offset->element_as_int(j) : 0;
      for (int64_t k = 0; k < depth; ++k)
        sum += w.element_as_int(transposed ? j * depth + k : k * columns + j);
      sums.set_element_int(j, sum);
    }
    return sums;
  }

  /// Products of the bytes q with the columns of w - offset in int32, plus `shift`: q w less the offset times
  /// the sum of the row of q. What wraps on the way is in the sum again.
  ir::ValueId packed_product(const ir::Node& node, ir::ValueId q, const OffsetBytes& bytes, bool transposed,
                             const Tensor& shift) {
    const std::string& name = graph_.value(node.inputs[1]).name;
    const int64_t columns = bytes.w.shape()[transposed ? 0 : 1];
    const ir::ValueId words = patch_.add_node("bytes_to_words", {q}, {}, node.origins)[0];
    const ir::ValueId packed =
        patch_.add_constant(name + ".words", pack_matrix_words(bytes.w, transposed, block_));
    const ir::ValueId product =
        patch_.add_node("matmul_packed", {words, packed, patch_.add_constant(name + ".shift", shift)},
                        {{"columns", columns}, {"words", int64_t{1}}}, node.origins)[0];
    if (!bytes.offset) return product;
    const ir::ValueId wide = patch_.add_node("cast", {q}, {{"to", DType::kInt32}}, node.origins)[0];
    const std::vector<int64_t> last{static_cast<int64_t>(patch_.value(q).type.shape.size()) - 1};
    const ir::ValueId rows =
        patch_.add_node("reduce_sum", {wide}, {{"axes", last}, {"keepdims", int64_t{1}}}, node.origins)[0];
    const ir::ValueId offset = patch_.add_constant(name + ".offset", *bytes.offset);
    const ir::ValueId moved = patch_.add_node("mul", {rows, offset}, {}, node.origins)[0];
    return patch_.add_node("sub", {product, moved}, {}, node.origins)[0];
  }

  /// (a sa + b sb) / s = a (sa / s) + b (sb / s), past what is monotone: a division by element less.
  void visit_division(const ir::Node& node) {
    const float divisor = divisor_of(node);
    ir::ValueId value = node.inputs[0];
    std::vector<const ir::Node*> monotone;
    const auto alone = [&] { return reads_[static_cast<size_t>(value)] == 1; };
    for (const ir::Node* relu = match(graph_, value, "relu"); relu != nullptr && alone();
         relu = match(graph_, value, "relu")) {
      monotone.push_back(relu);
      value = relu->inputs[0];
    }
    const ir::Node* add = match(graph_, value, "add");
    if (divisor == 0 || add == nullptr || !alone()) return;
    std::vector<ir::ValueId> parts;
    for (const ir::ValueId input : add->inputs) {
      const std::optional<Dequantized> part = match_dequantized(graph_, input);
      if (!part || !std::isnormal(part->scale / divisor)) return;
      const ir::ValueId scale =
          patch_.add_constant(graph_.value(input).name + ".factor",
                              Tensor::from<float>({}, std::vector<float>{part->scale / divisor}));
      parts.push_back(
          patch_.add_node("mul", {match(graph_, input, "mul")->inputs[0], scale}, {}, add->origins)[0]);
    }
    ir::ValueId sum = patch_.add_node("add", parts, {}, add->origins)[0];
    for (size_t i = monotone.size(); i-- > 0;)
      sum = patch_.add_node(monotone[i]->op, {sum}, monotone[i]->attrs, monotone[i]->origins)[0];
    patch_.replace(node.outputs[0], sum);
  }

  const ir::Graph& graph_;
  int64_t block_;
  ir::Patch patch_;
  std::vector<std::vector<ir::NodeId>> uses_;
  std::vector<int> reads_;
  std::map<ir::ValueId, ir::ValueId> unsigned_;
};

}  // namespace

ir::Graph integer_products(const ir::Graph& graph, const PassContext& context) {
  return context.facts.dot4 ? IntegerProducts(graph, context).run() : graph;
}

}  // namespace tensormill::passes
