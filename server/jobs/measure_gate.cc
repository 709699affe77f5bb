#include "server/jobs/measure_gate.h"

namespace tensormill::jobs {

MeasureGate::Builder::Builder(MeasureGate& gate, ChildProcess* child) : gate_(gate), child_(child) {
  if (child_ == nullptr) return;
  const std::lock_guard lock(gate_.mutex_);
  gate_.builders_.insert(child_);
  if (gate_.quiet_ > 0) child_->pause();
}

MeasureGate::Builder::~Builder() {
  if (child_ == nullptr) return;
  const std::lock_guard lock(gate_.mutex_);
  gate_.builders_.erase(child_);
}

MeasureGate::Quiet::Quiet(MeasureGate& gate) : gate_(gate) {
  const std::lock_guard lock(gate_.mutex_);
  if (++gate_.quiet_ > 1) return;
  for (ChildProcess* builder : gate_.builders_) builder->pause();
}

MeasureGate::Quiet::~Quiet() {
  const std::lock_guard lock(gate_.mutex_);
  if (--gate_.quiet_ > 0) return;
  for (ChildProcess* builder : gate_.builders_) builder->resume();
}

}  // namespace tensormill::jobs
