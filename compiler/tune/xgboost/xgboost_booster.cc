// What the module tensormill-xgboost.so gives: XGBoost through its C interface, which nothing else here
// knows.
#include "compiler/tune/booster.h"

#include <xgboost/c_api.h>

#include <limits>
#include <memory>

#include "runtime/base/error.h"

namespace tensormill::tune {

namespace {

void check(int status, const char* what) {
  TM_CHECK(status == 0, std::string("XGBoost: ") + what + ": " + XGBGetLastError());
}

struct FreeMatrix {
  void operator()(void* matrix) const { XGDMatrixFree(matrix); }
};
struct FreeTrees {
  void operator()(void* trees) const { XGBoosterFree(trees); }
};
using MatrixHandle = std::unique_ptr<void, FreeMatrix>;
using TreesHandle = std::unique_ptr<void, FreeTrees>;

MatrixHandle to_matrix(const Matrix& rows) {
  DMatrixHandle handle = nullptr;
  check(XGDMatrixCreateFromMat_omp(rows.values.data(), rows.rows(), rows.columns,
                                   std::numeric_limits<float>::quiet_NaN(), &handle, 1),
        "rows");
  return MatrixHandle(handle);
}

class XgboostBooster : public Booster {
public:
  XgboostBooster(const Matrix& rows, const std::vector<float>& labels, const std::vector<uint32_t>& groups,
                 const BoosterOptions& options);
  std::vector<float> predict(const Matrix& rows) const override;

private:
  TreesHandle trees_;
};

XgboostBooster::XgboostBooster(const Matrix& rows, const std::vector<float>& labels,
                               const std::vector<uint32_t>& groups, const BoosterOptions& options) {
  TM_CHECK(rows.rows() > 0 && labels.size() == rows.rows(), "one label a row");
  const MatrixHandle matrix = to_matrix(rows);
  check(XGDMatrixSetFloatInfo(matrix.get(), "label", labels.data(), labels.size()), "labels");
  if (options.ranking) {
    check(XGDMatrixSetUIntInfo(matrix.get(), "group", groups.data(), groups.size()), "groups");
  }
  DMatrixHandle training = matrix.get();
  BoosterHandle booster = nullptr;
  check(XGBoosterCreate(&training, 1, &booster), "create");
  trees_.reset(booster);
  const std::pair<const char*, std::string> parameters[] = {
      {"booster", "gbtree"},
      {"objective", options.ranking ? "rank:pairwise" : "reg:squarederror"},
      {"tree_method", "hist"},
      {"max_depth", std::to_string(options.depth)},
      {"eta", std::to_string(options.step)},
      {"gamma", "0.0001"},
      {"min_child_weight", "1"},
      {"subsample", "0.8"},
      {"colsample_bynode", "0.4"},
      {"lambda", "1"},
      {"seed", std::to_string(options.seed % 2147483647)},
      {"nthread", "1"},
      {"verbosity", "0"},
  };
  for (const auto& [name, value] : parameters) check(XGBoosterSetParam(booster, name, value.c_str()), name);
  for (int round = 0; round < options.rounds; ++round)
    check(XGBoosterUpdateOneIter(booster, round, training), "round");
}

std::vector<float> XgboostBooster::predict(const Matrix& rows) const {
  if (rows.rows() == 0) return {};
  const MatrixHandle matrix = to_matrix(rows);
  const char* config =
      R"({"type":0,"training":false,"iteration_begin":0,"iteration_end":0,"strict_shape":false})";
  const bst_ulong* shape = nullptr;
  bst_ulong dimensions = 0;
  const float* values = nullptr;
  check(XGBoosterPredictFromDMatrix(trees_.get(), matrix.get(), config, &shape, &dimensions, &values),
        "predict");
  TM_CHECK(dimensions >= 1 && shape[0] == rows.rows(), "one prediction a row");
  return {values, values + rows.rows()};
}

}  // namespace
}  // namespace tensormill::tune

/// Passes the object to its caller.
extern "C" [[gnu::visibility("default")]] tensormill::tune::Booster* tensormill_train_booster(
    const tensormill::tune::Matrix& rows, const std::vector<float>& labels,
    const std::vector<uint32_t>& groups, const tensormill::tune::BoosterOptions& options) {
  return std::make_unique<tensormill::tune::XgboostBooster>(rows, labels, groups, options).release();
}
