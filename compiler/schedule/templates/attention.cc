// Attention (ops/attention.cc): a task takes heads. Keys, transposed, and values of a head are copied side by
// side once; then, block of query rows by block: all scores of the block in scratch, their largest,
// exponentials and sum, and the mix of values in registers. No row of scores leaves the cache.
#include <algorithm>

#include "compiler/schedule/builder.h"

namespace tensormill::schedule {

namespace {

struct Stages {
  std::string keys, values, scores, logits, most, powers, sums, mix, root;
};

// The stages that `reader` reads.
std::vector<std::string> producers_of(const Builder& builder, const std::string& reader) {
  std::vector<std::string> found;
  for (const std::string& name : builder.stage_names()) {
    if (contains(builder.readers(name), reader)) found.push_back(name);
  }
  return found;
}

// The one of `names` that is a reduction, or not, as `reduces` says; "" where there is none or more than one.
std::string only(const Builder& builder, const std::vector<std::string>& names, bool reduces) {
  std::string found;
  for (const std::string& name : names) {
    if ((builder.stage(name).reduction != nullptr) != reduces) continue;
    if (!found.empty()) return "";
    found = name;
  }
  return found;
}

// softmax(scores) times values, by what reads what: the result is of a mix and of sums, both of the same
// powers; those are of logits less the largest of each row; the logits are of scores, sums of products with
// keys. Empty names for anything else.
Stages find_stages(const Builder& builder) {
  Stages found;
  size_t reductions = 0;
  std::string root;
  for (const std::string& name : builder.stage_names()) {
    if (builder.stage(name).reduction) ++reductions;
    if (builder.stage(name).is_output) root = root.empty() ? name : "";
  }
  if (reductions != 4 || root.empty()) return {};
  for (const std::string& name : producers_of(builder, root)) {
    if (!builder.stage(name).reduction) continue;
    (builder.stage(name).shape.size() == 4 ? found.mix : found.sums) = name;
  }
  if (found.mix.empty() || found.sums.empty()) return {};
  found.powers = only(builder, producers_of(builder, found.sums), false);
  for (const std::string& name : producers_of(builder, found.mix)) {
    if (name != found.powers) found.values = name;
  }
  if (found.powers.empty() || found.values.empty()) return {};
  found.most = only(builder, producers_of(builder, found.powers), true);
  found.logits = only(builder, producers_of(builder, found.powers), false);
  if (found.most.empty() || found.logits.empty()) return {};
  found.scores = only(builder, producers_of(builder, found.logits), true);
  if (found.scores.empty() || builder.stage(found.scores).shape.size() != 4) return {};
  const int64_t keys = builder.stage(found.scores).shape[3];
  for (const std::string& name : producers_of(builder, found.scores)) {
    const Shape& shape = builder.stage(name).shape;
    if (!builder.stage(name).reduction && shape.size() == 4 && shape[3] == keys) found.keys = name;
  }
  if (found.keys.empty()) return {};
  found.root = root;
  return found;
}

// The largest divisor of `extent` up to `limit`, unless it is less than half of what fits: then what fits.
int64_t block_of(int64_t extent, int64_t limit) {
  const int64_t most = std::max<int64_t>(std::min(extent, limit), 1);
  for (int64_t block = most; block > most / 2; --block) {
    if (extent % block == 0) return block;
  }
  return most;
}

class AttentionSchedule {
public:
  AttentionSchedule(Builder& builder, Stages stages, int64_t rows, int64_t lanes)
      : builder_(builder), stages_(std::move(stages)), rows_(rows), lanes_(lanes) {}

  void run() {
    const Shape scores = builder_.stage(stages_.scores).shape;
    const int64_t width = builder_.stage(stages_.mix).shape[3];
    const double work = static_cast<double>(num_elements(scores)) * static_cast<double>(width) * 2;
    const std::string head = schedule_root(width, work);
    // Elements of the keys move one by one: a vector of them would be gathered, which is slower.
    const int64_t together = builder_.knob("keys_together", block_of(width, 8), divisors(width, 16));
    split(stages_.keys, "i2", together);
    step("reorder", {stages_.keys, "i2.o", "i3", "i2.i"});
    step("unroll", {stages_.keys, "i2.i"});
    split(stages_.values, "i3", lanes_);
    step("vectorize", {stages_.values, "i3.i"});
    for (const std::string& copy : {stages_.keys, stages_.values})
      step("compute_at", {copy, stages_.root, head});
    schedule_scores((scores[3] + lanes_ - 1) / lanes_);
    schedule_row_reduction(stages_.most);
    split(stages_.powers, "i3", lanes_);
    step("vectorize", {stages_.powers, "i3.i"});
    at_block(stages_.powers);
    schedule_row_reduction(stages_.sums);
    schedule_mix();
  }

private:
  void step(const std::string& primitive, std::vector<std::string> args) {
    builder_.step(primitive, std::move(args));
  }
  void split(const std::string& stage, const std::string& axis, int64_t factor) {
    step("split", {stage, axis, std::to_string(factor)});
  }
  void at_block(const std::string& stage) { step("compute_at", {stage, stages_.root, "i1.o"}); }
  void in_registers(const std::string& stage) { step("store_in", {stage, "register"}); }

  // Returns the loop of one head.
  std::string schedule_root(int64_t width, double work) {
    const std::string& root = stages_.root;
    split(root, "i2", width);
    split(root, "i2.i", lanes_);
    split(root, "i1", rows_);
    step("reorder", {root, "i0", "i2.o", "i1.o", "i1.i", "i2.i.o", "i2.i.i"});
    step("unroll", {root, "i1.i"});
    step("unroll", {root, "i2.i.o"});
    step("vectorize", {root, "i2.i.i"});
    return builder_.parallelize(root, builder_.fuse(root, {"i0", "i2.o"}), work);
  }

  void schedule_scores(int64_t blocks) {
    const target::CpuFacts& facts = builder_.target().facts;
    const int64_t most = std::max<int64_t>(1, (facts.vector_registers - 4) / (rows_ + 1));
    // Rows alone hide the latency of the products where a core starts one a cycle.
    const int64_t enough = facts.products_per_cycle == 1 ? 1 : most;
    const int64_t vectors = builder_.knob("score_vectors", block_of(blocks, enough), divisors(blocks, most));
    for (const std::string& stage : {stages_.logits, stages_.scores}) {
      split(stage, "i2", rows_);
      split(stage, "i3", vectors * lanes_);
      split(stage, "i3.i", lanes_);
    }
    step("reorder", {stages_.logits, "i2.o", "i3.o", "i2.i", "i3.i.o", "i3.i.i"});
    step("reorder", {stages_.scores, "i2.o", "i3.o", "r0", "i2.i", "i3.i.o", "i3.i.i"});
    for (const std::string& stage : {stages_.logits, stages_.scores}) {
      step("unroll", {stage, "i2.i"});
      step("unroll", {stage, "i3.i.o"});
      step("vectorize", {stage, "i3.i.i"});
    }
    at_block(stages_.logits);
    step("compute_at", {stages_.scores, stages_.logits, "i3.o"});
    in_registers(stages_.scores);
  }

  // One vector of partial results a row, all rows of the block at a time.
  void schedule_row_reduction(const std::string& stage) {
    const std::string partial = stage + ".rf";
    split(stage, "r0", lanes_);
    step("rfactor", {stage, "r0.i"});
    split(stage, "i2", rows_);
    step("unroll", {stage, "i2.i"});
    step("vectorize", {stage, "r0"});
    split(partial, "i2", rows_);
    step("reorder", {partial, "i2.o", "r0", "i2.i", "i3"});
    step("unroll", {partial, "i2.i"});
    step("vectorize", {partial, "i3"});
    at_block(partial);
    in_registers(partial);
    at_block(stage);
  }

  void schedule_mix() {
    const std::string& mix = stages_.mix;
    split(mix, "i2", rows_);
    split(mix, "i3", lanes_);
    step("reorder", {mix, "i2.o", "r0", "i2.i", "i3.o", "i3.i"});
    step("unroll", {mix, "i2.i"});
    step("unroll", {mix, "i3.o"});
    step("vectorize", {mix, "i3.i"});
    at_block(mix);
    in_registers(mix);
  }

  Builder& builder_;
  Stages stages_;
  int64_t rows_, lanes_;
};

}  // namespace

bool template_attention(Builder& builder) {
  const Stages stages = find_stages(builder);
  if (stages.root.empty()) return false;
  const Shape scores = builder.stage(stages.scores).shape, out = builder.stage(stages.root).shape;
  const Shape mixed = builder.stage(stages.mix).shape;
  const int64_t lanes = builder.lanes(stages.scores), width = mixed.size() == 4 ? mixed[3] : 0;
  if (scores.size() != 4 || out.size() != 3 || num_elements(scores) == 0 || num_elements(out) == 0)
    return false;
  // Accumulators of the mix take at most two thirds of the registers.
  const target::CpuFacts& facts = builder.target().facts;
  const int64_t vectors = width / std::max<int64_t>(lanes, 1);
  if (lanes < 2 || width % lanes != 0 || scores[3] < lanes || vectors * 3 > facts.vector_registers * 2)
    return false;
  const int64_t most_rows = std::min<int64_t>(8, facts.vector_registers * 2 / 3 / vectors);
  const int64_t fitting = block_of(scores[2], most_rows);
  if ((scores[3] * (2 * width + 2 * fitting)) * 4 > facts.l2_bytes / 2) return false;
  builder.inline_injective({stages.keys, stages.values, stages.logits, stages.powers});
  for (const std::string& name : builder.stage_names()) {
    const Stage& stage = builder.stage(name);
    if (stage.attach != AttachKind::kInline && !stage.is_output && name != stages.keys &&
        name != stages.values && name != stages.logits && name != stages.powers && !stage.reduction)
      return false;
  }
  const int64_t rows = builder.knob("query_rows", fitting, divisors(scores[2], fitting));
  AttentionSchedule(builder, stages, rows, lanes).run();
  return true;
}

// The result's loops stay as they are: heads that fill no vector are not told apart by whole vectors of
// columns.
bool template_attention_by_stages(Builder& builder) {
  const std::string root = find_stages(builder).root;
  if (root.empty()) return false;
  builder.inline_injective();
  schedule_roots(builder, {root});
  return true;
}

}  // namespace tensormill::schedule
