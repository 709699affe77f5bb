/// Gradient-boosted trees through XGBoost's C interface: the only place that knows it. One thread and a fixed
/// seed: equal samples give equal predictions. Method: Chen, Guestrin, "XGBoost" (KDD 2016).
/// Thread-safety: a booster belongs to one thread.
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
  /// Trains on `rows` with `labels` (one a row, larger ones are better). `groups`: lengths of runs of rows
  /// that are compared with each other; they add up to the rows.
  Booster(const Matrix& rows, const std::vector<float>& labels, const std::vector<uint32_t>& groups,
          const BoosterOptions& options);
  ~Booster();
  Booster(const Booster&) = delete;
  Booster& operator=(const Booster&) = delete;

  /// One number a row; for ranking only their order means something.
  std::vector<float> predict(const Matrix& rows) const;

  /// "1.7.4": models of another version are not comparable.
  static std::string version();

private:
  struct Trees;
  std::unique_ptr<Trees> trees_;
};

}  // namespace tensormill::tune
