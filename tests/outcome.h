/// Calls that tell a Done how they ended, as calls that return.
#pragma once

#include <future>
#include <memory>

#include "api/services/common.h"

namespace tensormill {

/// What `start` tells the Done that it is given; throws what it says went wrong.
template <typename Result, typename Start>
Result result_of(const Start& start) {
  const auto ended = std::make_shared<std::promise<services::Outcome<Result>>>();
  start([ended](services::Outcome<Result> outcome) { ended->set_value(std::move(outcome)); });
  return ended->get_future().get().take();
}

}  // namespace tensormill
