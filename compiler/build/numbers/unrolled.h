/// Recurrent layers of a short, known length. Thread-safety: as the builder.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/build/compose.h"

namespace tensormill::build {

/// The results [steps,batch,...] of step(inputs [batch,...], state) for each of `all` [steps,batch,...], from
/// the first one to the last, or back. It gives the state behind the step, whose `h` is the step's result;
/// `state` becomes the last one.
template <typename State, typename Step>
ir::ValueId unrolled_steps(Compose& c, ir::ValueId all, bool is_reverse, State& state, const Step& step) {
  const int64_t steps = c.shape(all)[0];
  std::vector<ir::ValueId> results(static_cast<size_t>(steps));
  for (int64_t count = 0; count < steps; ++count) {
    const int64_t t = is_reverse ? steps - 1 - count : count;
    state = step(c.squeeze(c.slice(all, 0, t, 1), 0), state);
    results[static_cast<size_t>(t)] = c.unsqueeze(state.h, 0);
  }
  return c.concat(results, 0);
}

}  // namespace tensormill::build
