#include "compiler/tune/booster.h"

#include "runtime/base/error.h"
#include "runtime/base/module.h"

namespace tensormill::tune {
namespace {

using Train = Booster* (*)(const Matrix&, const std::vector<float>&, const std::vector<uint32_t>&,
                           const BoosterOptions&);

Train find_train() {
  // Once: a confined child does not find files by name.
  static const auto train =
      reinterpret_cast<Train>(load_module("tensormill-xgboost", "tensormill_train_booster"));
  return train;
}

}  // namespace

void Matrix::append(const std::vector<float>& row) {
  if (columns == 0) columns = row.size();
  TM_CHECK(row.size() == columns, "rows of different lengths");
  values.insert(values.end(), row.begin(), row.end());
}

void load_booster() { find_train(); }

std::unique_ptr<Booster> train_booster(const Matrix& rows, const std::vector<float>& labels,
                                       const std::vector<uint32_t>& groups, const BoosterOptions& options) {
  return std::unique_ptr<Booster>(find_train()(rows, labels, groups, options));
}

}  // namespace tensormill::tune
