// Products of two tensors that are known only at run time. The columns of the second operand that a register
// tile needs are copied side by side once (the panel of Goto and van de Geijn, "Anatomy of High-Performance
// Matrix Multiplication", 2008, section 4) and serve all rows: rows of a wide matrix are a power of two apart
// more often than not, and would fall into few sets of the cache.
#include <algorithm>
#include <optional>

#include "compiler/schedule/templates/register_tile.h"

namespace tensormill::schedule {

namespace {

constexpr int64_t kFewestRows = 16;  // what makes a copy worth its time

// The one stage that is a reduction; the others must be inlined but for at most one, which reads it.
std::string find_product(const Builder& builder) {
  std::string product;
  int others = 0;
  for (const std::string& name : builder.stage_names()) {
    const Stage& stage = builder.stage(name);
    if (stage.attach == AttachKind::kInline) continue;
    if (!stage.reduction) {
      ++others;
    } else if (product.empty()) {
      product = name;
    } else {
      return "";
    }
  }
  return others <= 1 ? product : "";
}

// "pN" or a stage's name for the operand that is used by all rows and runs along the columns; "" when there
// is none.
std::string find_panel_source(const Builder& builder, const std::string& product) {
  const Stage& stage = builder.stage(product);
  const std::vector<Access> accesses = builder.accesses(product);
  std::vector<const te::TensorNode*> direct;
  for (const te::Expr& expr : definition(stage)) collect_reads(expr, direct);
  const size_t column = stage.shape.size() - 1, row = column - 1;
  if (accesses.size() != 2 || accesses[0].tensor == accesses[1].tensor) return "";
  for (size_t i = 0; i < 2; ++i) {
    const Access &panel = accesses[i], &rows = accesses[1 - i];
    const bool regular =
        std::none_of(panel.irregular.begin(), panel.irregular.end(), [](char c) { return c != 0; });
    if (!regular || panel.stride[row] != 0 || panel.stride[column] != 1 || rows.stride[column] != 0 ||
        std::find(direct.begin(), direct.end(), panel.tensor) == direct.end())
      continue;
    const int input = builder.state().input_of(panel.tensor), made = builder.state().stage_of(panel.tensor);
    if (input >= 0) return "p" + std::to_string(input);
    if (made >= 0) return builder.state().stages()[static_cast<size_t>(made)].name;
  }
  return "";
}

bool schedule_panels(Builder& builder) {
  const std::string product = find_product(builder);
  if (product.empty()) return false;
  const Stage& stage = builder.stage(product);
  const Shape shape = stage.shape;
  if (shape.size() < 2 || num_elements(shape) == 0 || stage.reduction->axes.size() != 1 ||
      stage.dtypes.size() != 1)
    return false;
  const int64_t lanes = builder.lanes(product), depth = builder.extent(product, "r0");
  const int64_t rows = shape[shape.size() - 2], columns = shape.back();
  if (rows < kFewestRows || lanes < 2 || columns < 2 * lanes || depth < 1) return false;
  const std::string source = find_panel_source(builder, product);
  const target::CpuFacts& facts = builder.target().facts;
  RegisterTile tile = choose_tile(rows, (columns + lanes - 1) / lanes, false, facts);
  tile.vectors = builder.knob("tile_vectors", tile.vectors,
                              range_candidates(1, std::min<int64_t>((columns + lanes - 1) / lanes, 8)));
  const int64_t most = std::min(rows, std::max<int64_t>((facts.vector_registers - 2) / tile.vectors, 1));
  tile.rows = builder.knob("tile_rows", std::min(tile.rows, most), range_candidates(1, most));
  const int64_t width = tile.vectors * lanes;
  if (source.empty() || depth * width * facts.vector_bits / 8 / lanes > facts.l2_bytes / 2) return false;

  const Anchor anchor = make_anchor(builder, product);
  builder.step("cache_read", {source, anchor.stage});
  const std::string panel = source + "." + anchor.stage;
  const std::string m = "i" + std::to_string(shape.size() - 2), n = "i" + std::to_string(shape.size() - 1);
  for (const std::string& name : {anchor.root, anchor.stage}) {
    builder.step("split", {name, m, std::to_string(tile.rows)});
    builder.step("split", {name, n, std::to_string(width)});
    builder.step("split", {name, n + ".i", std::to_string(lanes)});
  }
  builder.step("reorder", {anchor.root, n + ".o", m + ".o", m + ".i", n + ".i.o", n + ".i.i"});
  builder.step("reorder", {anchor.stage, m + ".o", n + ".o", "r0", m + ".i", n + ".i.o", n + ".i.i"});
  for (const std::string& name : {anchor.root, anchor.stage}) {
    builder.step("unroll", {name, m + ".i"});
    builder.step("unroll", {name, n + ".i.o"});
    builder.step("vectorize", {name, n + ".i.i"});
  }
  std::vector<std::string> outer = data_axes(builder.stage(anchor.root));
  outer.resize(outer.size() - 2);
  outer.push_back(n + ".o");
  const double work = static_cast<double>(num_elements(shape)) * static_cast<double>(depth);
  const std::string inside = builder.parallelize(anchor.root, builder.fuse(anchor.root, outer), work);
  const std::string last = data_axes(builder.stage(panel)).back();
  builder.step("split", {panel, last, std::to_string(lanes)});
  builder.step("vectorize", {panel, last + ".i"});
  builder.step("compute_at", {panel, anchor.root, inside});
  builder.step("compute_at", {anchor.stage, anchor.root, m + ".o"});
  builder.step("store_in", {anchor.stage, "register"});
  return true;
}

}  // namespace

bool template_matmul(Builder& builder) {
  builder.inline_injective();
  return schedule_panels(builder);
}

}  // namespace tensormill::schedule
