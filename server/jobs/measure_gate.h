/// Whose children compute while a candidate is measured: nobody's. A core that another hardware thread shares
/// does not look different from one of its own everywhere, so whatever jobs build stands still for that time.
/// Thread-safety: all methods from many threads.
#pragma once

#include <mutex>
#include <set>

#include "server/jobs/child_process.h"

namespace tensormill::jobs {

class MeasureGate {
public:
  /// A child that stands still while somebody measures, for as long as this lives. Null: no child.
  class Builder {
  public:
    Builder(MeasureGate& gate, ChildProcess* child);
    ~Builder();
    Builder(const Builder&) = delete;
    Builder& operator=(const Builder&) = delete;

  private:
    MeasureGate& gate_;
    ChildProcess* child_;
  };

  /// All builders stand still for as long as this lives. Several may overlap.
  class Quiet {
  public:
    explicit Quiet(MeasureGate& gate);
    ~Quiet();
    Quiet(const Quiet&) = delete;
    Quiet& operator=(const Quiet&) = delete;

  private:
    MeasureGate& gate_;
  };

private:
  std::mutex mutex_;
  std::set<ChildProcess*> builders_;
  int quiet_ = 0;
};

}  // namespace tensormill::jobs
