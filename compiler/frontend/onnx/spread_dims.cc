#include "compiler/frontend/onnx/spread_dims.h"

#include <algorithm>
#include <set>

namespace tensormill::frontend::onnx {

namespace {

/// The dim that the formula is, if it is one.
const DimTerm* same_dim(const DimFormula& formula) {
  if (formula.offset != 0 || formula.products.size() != 1) return nullptr;
  const DimProduct& product = formula.products[0];
  if (product.scale != 1 || product.factors.size() != 1) return nullptr;
  const DimTerm& term = product.factors[0];
  return term.mul == 1 && term.add == 0 && term.div == 1 ? &term : nullptr;
}

class SpreadFinder {
public:
  SpreadFinder(const TakesAt& takes, const ir::SampleSet& samples,
               const std::vector<std::vector<size_t>>& inputs)
      : takes_(takes), base_(samples.samples.front().dims), inputs_(inputs) {
    std::set<size_t> roots;
    for (const ir::DependentDim& each : samples.dependents) {
      dependents_.insert(each.dim);
      if (const DimTerm* same = same_dim(each.value)) roots.insert(static_cast<size_t>(same->dim));
    }
    for (const size_t dim : roots) {
      if (dependents_.count(dim) == 0) roots_.push_back(dim);
    }
  }

  std::vector<std::vector<size_t>> run() {
    std::vector<size_t> alone, roots;
    for (const size_t dim : dependents_) {
      if (add({dim})) alone.push_back(dim);
    }
    // An operand of several axes, as a mask of batches and heads, those beside each other first.
    for (size_t count = 2; count <= kMostTogether; ++count) add_together(alone, count);
    for (const size_t dim : roots_) {
      if (add({dim})) roots.push_back(dim);
    }
    add_pairs(alone);
    add_pairs(roots);
    return std::move(found_);
  }

private:
  static constexpr size_t kMostTogether = 4;

  bool is_full() const { return found_.size() + 1 >= kMostGenericPlans; }

  /// Whether the model takes the set beside what the others are in the first sample.
  bool add(std::vector<size_t> dims) {
    if (is_full()) return false;
    std::sort(dims.begin(), dims.end());
    if (!tried_.insert(dims).second) return false;
    std::vector<int64_t> at = base_;
    for (const size_t dim : dims) {
      if (at[dim] == 1) return false;
      at[dim] = 1;
    }
    if (!takes_(at)) return false;
    found_.push_back(std::move(dims));
    return true;
  }

  /// So many neighbours among an input's dims.
  void add_together(const std::vector<size_t>& alone, size_t count) {
    for (const std::vector<size_t>& input : inputs_) {
      std::vector<size_t> own;
      std::copy_if(input.begin(), input.end(), std::back_inserter(own),
                   [&](size_t dim) { return std::find(alone.begin(), alone.end(), dim) != alone.end(); });
      for (size_t first = 0; first + count <= own.size(); ++first) {
        const auto begin = own.begin() + static_cast<std::ptrdiff_t>(first);
        add({begin, begin + static_cast<std::ptrdiff_t>(count)});
      }
    }
  }

  void add_pairs(const std::vector<size_t>& dims) {
    for (size_t i = 0; i < dims.size(); ++i) {
      for (size_t k = i + 1; k < dims.size(); ++k) add({dims[i], dims[k]});
    }
  }

  const TakesAt& takes_;
  const std::vector<int64_t>& base_;
  const std::vector<std::vector<size_t>>& inputs_;
  std::set<size_t> dependents_;
  std::vector<size_t> roots_;
  std::set<std::vector<size_t>> tried_;
  std::vector<std::vector<size_t>> found_;
};

}  // namespace

std::vector<std::vector<size_t>> find_spread_dims(const TakesAt& takes, const ir::SampleSet& samples,
                                                  const std::vector<std::vector<size_t>>& inputs) {
  if (samples.samples.empty() || samples.dependents.empty()) return {};
  return SpreadFinder(takes, samples, inputs).run();
}

}  // namespace tensormill::frontend::onnx
