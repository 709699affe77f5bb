/// Names of what people name: models, deployments, API keys, dims. Thread-safety: pure.
#pragma once

#include <string_view>

namespace tensormill {

/// [A-Za-z0-9][A-Za-z0-9._-]{0,127}
bool is_name(std::string_view text);

}  // namespace tensormill
