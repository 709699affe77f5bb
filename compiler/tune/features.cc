#include "compiler/tune/features.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "compiler/tune/live_bodies.h"
#include "compiler/tune/traffic.h"

namespace tensormill::tune {

namespace {

using te::ExprOp;
using te::ForKind;
using te::StmtOp;

constexpr size_t kStores = 3, kAccesses = 4;
constexpr size_t kStoreFeatures = 31 + kAccesses * 5;

// Operations of a port that a division or root, and a function of vector math, take.
constexpr double kDivisionCost = 8, kMathCost = 20;
// Bytes a cycle from the second cache, and from beyond it.
constexpr double kL2Bytes = 32, kL3Bytes = 9;

float rounded(double value) { return static_cast<float>(std::round(value * 64) / 64); }
float share(double part, double whole) {
  return rounded(std::clamp(std::log2((part + 1) / (whole + 1)), -16.0, 16.0));
}
float scaled(double value) { return rounded(std::log2(1 + std::max(value, 0.0))); }

double elements_of(const te::Buffer& buffer) {
  double elements = 1;
  for (const te::Expr& extent : buffer->shape) {
    if (const int64_t* constant = te::as_int(extent)) elements *= static_cast<double>(*constant);
  }
  return elements;
}

double bytes_of(const te::Buffer& buffer) {
  return elements_of(buffer) * static_cast<double>(dtype_bytes(buffer->dtype));
}

struct Access : NestAccess {
  double elements = 1;  ///< distinct ones
  double bytes() const { return elements * element_bytes; }
};

enum Arithmetic : size_t { kAdds, kProducts, kDivisions, kMath, kInteger, kComparisons, kLoads, kKinds };

void count(const te::Expr& expr, std::array<double, kKinds>& counts) {
  const ExprOp op = expr->op;
  if (op == ExprOp::kLoad) {
    ++counts[kLoads];
  } else if (expr->args.empty()) {
    return;
  } else if (!expr->type.is_float()) {
    ++counts[expr->type.dtype == DType::kBool ? kComparisons : kInteger];
  } else if (op == ExprOp::kMul || op == ExprOp::kFma) {
    ++counts[kProducts];
  } else if (op == ExprOp::kDiv || op == ExprOp::kSqrt) {
    ++counts[kDivisions];
  } else if (op >= ExprOp::kExp && op <= ExprOp::kPow) {
    ++counts[kMath];
  } else if (op == ExprOp::kSelect || op == ExprOp::kMin || op == ExprOp::kMax) {
    ++counts[kComparisons];
  } else {
    ++counts[kAdds];
  }
}

double copies_of_body(const std::vector<NestLoop>& loops) {
  double copies = 1;
  for (size_t i = first_of_body(loops); i < loops.size(); ++i)
    copies *= loops[i].kind == ForKind::kUnrolled ? loops[i].extent : 1;
  return copies;
}

struct StoreFacts {
  double runs = 1;
  std::vector<float> features;
};

/// A condition around what is visited.
struct Guard {
  te::Expr condition;    ///< null where what is visited runs when it does not hold
  double quotients = 0;  ///< that it asks for
  size_t depth = 0;      ///< loops around it
};

class Collector {
public:
  explicit Collector(const target::CpuFacts& facts) : facts_(facts) {}

  void visit(const te::Stmt& stmt) {
    if (!stmt) return;
    switch (stmt->op) {
      case StmtOp::kFor:
        visit_loop(*stmt);
        return;
      case StmtOp::kLet:
        lets_.emplace_back(stmt->var, stmt->value);
        values_.push(stmt->var.get(), evaluate(stmt->value, values_));
        visit(stmt->body);
        values_.pop();
        lets_.pop_back();
        return;
      case StmtOp::kAllocate:
        if (stmt->buffer->scope == te::Scope::kRegister) {
          register_vectors_ += std::ceil(bytes_of(stmt->buffer) * 8 / facts_.vector_bits);
        } else {
          temporary_bytes_ += bytes_of(stmt->buffer);
        }
        visit(stmt->body);
        return;
      case StmtOp::kIf:
        guards_.push_back({stmt->condition, quotients(stmt->condition), loops_.size()});
        visit(stmt->body);
        guards_.back().condition = te::Expr();
        visit(stmt->else_body);
        guards_.pop_back();
        return;
      case StmtOp::kSeq:
        for (const te::Stmt& child : stmt->children) visit(child);
        return;
      case StmtOp::kStore:
        add_store(*stmt);
        return;
    }
  }

  std::vector<float> result() {
    std::stable_sort(stores_.begin(), stores_.end(),
                     [](const StoreFacts& a, const StoreFacts& b) { return a.runs > b.runs; });
    std::vector<float> features;
    for (size_t i = 0; i < std::min(kStores, stores_.size()); ++i)
      features.insert(features.end(), stores_[i].features.begin(), stores_[i].features.end());
    features.resize(kStores * kStoreFeatures, 0);
    const double cores = std::max(1, facts_.num_cores);
    for (double value : {static_cast<double>(stores_.size()), loop_count_, copies_, temporary_bytes_, runs_})
      features.push_back(scaled(value));
    features.push_back(rounded(register_vectors_ / std::max(1, facts_.vector_registers)));
    features.push_back(scaled(tasks_));
    features.push_back(rounded(tasks_ / (std::ceil(tasks_ / cores) * cores)));
    const double memory = std::max(l2_cycles_, l3_cycles_);
    const double together = port_cycles_ + entry_cycles_ + l2_cycles_ + l3_cycles_;
    const double overlapped = std::max(port_cycles_, memory) + entry_cycles_;
    features.push_back(scaled(together));
    features.push_back(scaled(overlapped));
    features.push_back(share(together, ideal_cycles_));
    features.push_back(share(overlapped, ideal_cycles_));
    features.push_back(share(port_cycles_, ideal_cycles_));
    features.push_back(rounded(std::min(overshoot_, 64.0)));
    return features;
  }

private:
  void visit_loop(const te::StmtNode& loop) {
    const auto extent = static_cast<double>(std::max<int64_t>(evaluate(loop.extent, values_), 1));
    values_.push(loop.var.get(), evaluate(loop.min, values_));
    loops_.push_back({loop.var, extent, loop.for_kind});
    ++loop_count_;
    if (loop.for_kind == ForKind::kParallel) tasks_ = std::max(tasks_, extent);
    visit(loop.body);
    loops_.pop_back();
    values_.pop();
  }

  int64_t address(const te::Buffer& buffer, const std::vector<te::Expr>& indices) {
    int64_t flat = 0;
    for (size_t d = 0; d < indices.size(); ++d) {
      const int64_t* extent = te::as_int(buffer->shape[d]);
      flat = flat * (extent != nullptr ? *extent : 1) + evaluate(indices[d], values_);
    }
    return flat;
  }

  // By how much the address moves when a loop takes one step, what the lets compute from it included.
  int64_t step_of(const NestLoop& loop, const te::Buffer& buffer, const std::vector<te::Expr>& indices,
                  int64_t first) {
    int64_t* value = values_.find(loop.var.get());
    *value += 1;
    update_lets(lets_, values_);
    const int64_t step = address(buffer, indices) - first;
    *value -= 1;
    update_lets(lets_, values_);
    return step;
  }

  Access access(const te::Buffer& buffer, const std::vector<te::Expr>& indices) {
    Access result;
    result.in_register = buffer->scope == te::Scope::kRegister;
    result.element_bytes = static_cast<double>(dtype_bytes(buffer->dtype));
    result.buffer_elements = std::max(elements_of(buffer), 1.0);
    const int64_t first = address(buffer, indices);
    for (const NestLoop& loop : loops_) {
      const int64_t step = loop.extent > 1 ? step_of(loop, buffer, indices, first) : 0;
      result.steps.push_back(step);
    }
    result.elements = distinct_elements(result, loops_, 0);
    return result;
  }

  double runs_within(const std::vector<Access>& accesses, double bytes) const {
    double runs = 1;
    for (size_t i = loops_.size(); i-- > 0;) {
      double touched = 0;
      for (const Access& one : accesses) touched += one.in_register ? 0 : distinct_bytes(one, loops_, i);
      if (touched > bytes) return runs;
      runs *= loops_[i].extent;
    }
    return runs;
  }

  void add_loops(StoreFacts& facts) const {
    std::array<double, 4> products = {1, 1, 1, 1};
    double innermost = 1, second = 1;
    for (const NestLoop& loop : loops_) {
      facts.runs *= loop.extent;
      products.at(static_cast<size_t>(loop.kind)) *= loop.extent;
      if (loop.kind != ForKind::kSerial) continue;
      second = innermost;
      innermost = loop.extent;
    }
    for (double value : {facts.runs, products[static_cast<size_t>(ForKind::kSerial)],
                         products[static_cast<size_t>(ForKind::kUnrolled)],
                         products[static_cast<size_t>(ForKind::kVectorized)],
                         products[static_cast<size_t>(ForKind::kParallel)]})
      facts.features.push_back(scaled(value));
    facts.features.push_back(static_cast<float>(loops_.size()));
    facts.features.push_back(scaled(innermost));
    facts.features.push_back(scaled(second));
  }

  void add_body(const std::vector<Access>& accesses, std::vector<float>& features) const {
    double runs = 1, loads = 0, of_one = 0;
    std::vector<double> distinct(accesses.size(), 1);
    std::vector<bool> is_one(accesses.size(), true);
    for (size_t i = first_of_body(loops_); i < loops_.size(); ++i) {
      if (loops_[i].kind == ForKind::kVectorized) {
        for (size_t a = 0; a < accesses.size(); ++a) is_one[a] = is_one[a] && accesses[a].steps[i] == 0;
        continue;
      }
      runs *= loops_[i].extent;
      for (size_t a = 0; a < accesses.size(); ++a) {
        if (accesses[a].steps[i] != 0) distinct[a] *= loops_[i].extent;
      }
    }
    for (size_t a = 1; a < accesses.size(); ++a) {
      loads += accesses[a].in_register ? 0 : distinct[a];
      of_one += accesses[a].in_register || !is_one[a] ? 0 : distinct[a];
    }
    features.push_back(scaled(runs));
    features.push_back(scaled(loads));
    features.push_back(scaled(of_one));
    features.push_back(rounded(std::min(runs / std::max(loads, 1.0), 64.0)));
  }

  // Conditions of linear indices leave a loop where it is cut; others are asked in each iteration.
  void add_guards(std::vector<float>& features) const {
    const size_t body = first_of_body(loops_);
    double divided = 0, inside = 0;
    for (const Guard& guard : guards_) {
      divided += guard.quotients;
      inside += guard.depth >= body ? 1 : 0;
    }
    for (double value : {static_cast<double>(guards_.size()), divided, inside})
      features.push_back(static_cast<float>(value));
  }

  // Quotients and remainders in an index, with those that its variables were let be.
  double quotients(const te::Expr& expr) const {
    double count = 0;
    te::for_each_expr(expr, [&](const te::Expr& part) {
      count += part->op == ExprOp::kFloorDiv || part->op == ExprOp::kFloorMod ? 1 : 0;
      if (part->op != ExprOp::kVar) return;
      for (const auto& [var, definition] : lets_) count += var == part->var ? quotients(definition) : 0;
    });
    return count;
  }

  // The cycles of all bodies, of those that conditions cut what is left; adds features of how much that is.
  PortCycles cycles_of_bodies(const std::vector<NestAccess>& accesses, double operations,
                              std::vector<float>& features) {
    std::vector<te::Expr> conditions;
    for (const Guard& guard : guards_) {
      if (guard.condition) conditions.push_back(guard.condition);
    }
    PortCycles sum;
    double live = 0, least = INFINITY;
    for (const LiveBody& body : live_bodies(conditions, loops_, lets_, values_)) {
      const double copies = copies_of_body(body.loops);
      live += body.share * copies / copies_of_body(loops_);
      if (copies == 0) continue;
      least = std::min(least, copies);
      const PortCycles cycles = port_cycles(accesses, body.loops, operations, facts_);
      sum.ideal += body.share * cycles.ideal;
      sum.ports += body.share * cycles.ports;
      sum.entries += body.share * cycles.entries;
      sum.vectors = std::max(sum.vectors, cycles.vectors);
    }
    features.push_back(rounded(live));
    features.push_back(scaled(std::isfinite(least) ? least : 0));
    return sum;
  }

  // Shares, so that they mean the same in kernels of other sizes.
  void add_cycles(const std::vector<Access>& accesses, const std::array<double, kKinds>& counts,
                  StoreFacts& facts) {
    const std::vector<NestAccess> plain(accesses.begin(), accesses.end());
    const double operations = counts[kAdds] + counts[kProducts] + counts[kComparisons] +
                              kDivisionCost * counts[kDivisions] + kMathCost * counts[kMath];
    add_guards(facts.features);
    const PortCycles cycles = cycles_of_bodies(plain, operations, facts.features);
    const double from_l2 = bytes_moved(plain, loops_, static_cast<double>(facts_.l1d_bytes) * 0.75);
    const double from_l3 = bytes_moved(plain, loops_, static_cast<double>(facts_.l2_bytes) * 0.75);
    ideal_cycles_ += cycles.ideal;
    port_cycles_ += cycles.ports;
    entry_cycles_ += cycles.entries;
    l2_cycles_ += from_l2 / kL2Bytes;
    l3_cycles_ += from_l3 / kL3Bytes;
    facts.features.push_back(rounded(cycles.vectors / std::max(1, facts_.vector_registers)));
    facts.features.push_back(share(cycles.ports, cycles.ports + cycles.entries));
    facts.features.push_back(share(from_l2 / kL2Bytes, cycles.ports));
    facts.features.push_back(share(from_l3 / kL3Bytes, cycles.ports));
    // The results are written by stores that run once an element, but for what reaches past the end.
    if (!accesses[0].in_register) overshoot_ = std::max(overshoot_, facts.runs / accesses[0].elements);
  }

  void add_accesses(std::vector<Access> accesses, double runs, std::vector<float>& features) const {
    std::stable_sort(accesses.begin() + 1, accesses.end(),
                     [](const Access& a, const Access& b) { return a.bytes() > b.bytes(); });
    for (size_t a = 0; a < kAccesses; ++a) {
      if (a >= accesses.size()) {
        features.insert(features.end(), 5, 0);
        continue;
      }
      double vector_step = 0, serial_step = 0;
      for (size_t i = 0; i < loops_.size(); ++i) {
        const auto step = static_cast<double>(std::abs(accesses[a].steps[i]));
        if (loops_[i].kind == ForKind::kVectorized) vector_step = step;
        if (loops_[i].kind == ForKind::kSerial) serial_step = step;
      }
      for (double value : {accesses[a].bytes(), runs / accesses[a].elements, vector_step, serial_step})
        features.push_back(scaled(value));
      features.push_back(accesses[a].in_register ? 1 : 0);
    }
  }

  void add_store(const te::StmtNode& store) {
    StoreFacts facts;
    add_loops(facts);
    std::array<double, kKinds> counts{};
    std::vector<Access> accesses = {access(store.buffer, store.indices)};
    te::for_each_expr(store.value, [&](const te::Expr& expr) {
      count(expr, counts);
      if (expr->op == ExprOp::kLoad) accesses.push_back(access(expr->buffer, expr->args));
    });
    for (double value : counts) facts.features.push_back(scaled(value));
    double bytes = 0, copies = 1;
    for (const Access& one : accesses) bytes += one.in_register ? 0 : one.bytes();
    for (double value : {runs_within(accesses, static_cast<double>(facts_.l1d_bytes) / 2),
                         runs_within(accesses, static_cast<double>(facts_.l2_bytes) / 2), bytes})
      facts.features.push_back(scaled(value));
    add_body(accesses, facts.features);
    add_cycles(accesses, counts, facts);
    add_accesses(accesses, facts.runs, facts.features);
    for (const NestLoop& loop : loops_) copies *= loop.kind == ForKind::kUnrolled ? loop.extent : 1;
    copies_ += copies;
    runs_ += facts.runs;
    stores_.push_back(std::move(facts));
  }

  const target::CpuFacts& facts_;
  std::vector<NestLoop> loops_;
  Lets lets_;
  std::vector<Guard> guards_;
  Values values_;
  std::vector<StoreFacts> stores_;
  double loop_count_ = 0, temporary_bytes_ = 0, register_vectors_ = 0, copies_ = 0, runs_ = 0, tasks_ = 1;
  double ideal_cycles_ = 0, port_cycles_ = 0, entry_cycles_ = 0, l2_cycles_ = 0, l3_cycles_ = 0;
  double overshoot_ = 1;
};

}  // namespace

std::vector<float> loop_features(const te::Function& function, const target::CpuFacts& facts) {
  Collector collector(facts);
  collector.visit(function.body);
  return collector.result();
}

}  // namespace tensormill::tune
