/// TensorFlow's graphs out of the JSON form of their messages. Thread-safety: a reader belongs to one thread.
#pragma once

#include <deque>
#include <functional>
#include <string>

#include "compiler/frontend/tensorflow/model.h"
#include "compiler/frontend/wire/work_budget.h"
#include "runtime/base/json_fwd.h"

namespace tensormill::frontend::tensorflow {

class GraphJsonReader {
public:
  /// The elements of a constant by its node's name; nothing where they stand in the message.
  using Weights = std::function<std::optional<TensorValue>(const std::string& node)>;
  /// `texts` keeps what the graph has views of.
  GraphJsonReader(std::deque<std::string>& texts, Weights weights)
      : texts_(texts), weights_(std::move(weights)) {}
  /// Throw Error(kInvalidModel) naming the node.
  Graph graph(const Json& json);
  TensorInfo tensor_info(const Json& json);

private:
  Node node(const Json& json);
  Function function(const Json& json);
  Argument argument(const Json& json);
  Attributes attributes(const Json& json);
  AttrValue attr_value(const Json& json);
  AttrList attr_list(const Json& json);
  FunctionRef function_ref(const Json& json);
  TensorValue tensor(const Json& json);
  std::string_view kept(std::string text);
  std::string_view kept_bytes(const Json& json);

  std::deque<std::string>& texts_;
  const Weights weights_;
  wire::WorkBudget nodes_{"nodes and functions", 1'000'000};
};

/// "DT_FLOAT", or a number of the schema. kInvalid for a name that is not known.
DataType data_type_of(const Json& json);

}  // namespace tensormill::frontend::tensorflow
