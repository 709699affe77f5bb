/// Gradient-boosted trees, by XGBoost in a module that is loaded on demand. One thread and a fixed seed:
/// equal samples give equal predictions. Method: Chen, Guestrin, "XGBoost" (KDD 2016). Thread-safety: a
/// booster belongs to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tensormill::tune {

/// Rows of the same length, one after the other.
struct Matrix {
  size_t columns = 0;
  std::vector<float> values;
  size_t rows() const { return columns == 0 ? 0 : values.size() / columns; }
  void append(const std::vector<float>& row);
};

struct BoosterOptions {
  bool ranking = false;  ///< by pairs within a group instead of least squares
  int rounds = 200;
  int depth = 5;
  double step = 0.1;
  uint64_t seed = 0;
};

class Booster {
public:
  virtual ~Booster() = default;
  /// One number a row; for ranking only their order means something.
  virtual std::vector<float> predict(const Matrix& rows) const = 0;
};

/// Trained on `rows` with `labels` (one a row, larger ones are better). `groups`: lengths of runs of rows
/// that are compared with each other; they add up to the rows. Loads the module tensormill-xgboost; throws
/// Error(kNotSupported) where it is not installed.
std::unique_ptr<Booster> train_booster(const Matrix& rows, const std::vector<float>& labels,
                                       const std::vector<uint32_t>& groups, const BoosterOptions& options);
/// Loads what train_booster needs, in a child before its walls are up; throws as it does.
void load_booster();

}  // namespace tensormill::tune
