/// What a run throws at whose extents the model is another graph than its plan. Thread-safety: a value.
#pragma once

#include <string>
#include <utility>

#include "runtime/base/error.h"

namespace tensormill {

/// Error(kNotSupported): data are not to blame. Runs of packages that hold the model are interpreted instead.
class OtherGraph : public Error {
public:
  explicit OtherGraph(std::string message) : Error(ErrorCode::kNotSupported, std::move(message)) {}
};

}  // namespace tensormill
