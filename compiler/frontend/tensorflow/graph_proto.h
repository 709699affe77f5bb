/// Messages of TensorFlow's graphs out of protobuf's wire format. Thread-safety: a reader belongs to one
/// thread.
#pragma once

#include "compiler/frontend/tensorflow/model.h"
#include "compiler/frontend/wire/protobuf.h"
#include "compiler/frontend/wire/work_budget.h"

namespace tensormill::frontend::tensorflow {

class GraphProtoReader {
public:
  Graph graph(wire::WireReader reader);
  TensorShape shape(wire::WireReader reader);
  /// A NodeDef by itself, which may have no name. Throws Error(kInvalidModel).
  Node single_node(std::string_view bytes);

private:
  Node node(wire::WireReader reader);
  Node fields_of_node(wire::WireReader& reader);
  Function function(wire::WireReader reader);
  void signature(wire::WireReader reader, Function& to);
  Argument argument(wire::WireReader reader);
  void attribute(wire::WireReader entry, Attributes& to);
  AttrValue attr_value(wire::WireReader reader);
  AttrList attr_list(wire::WireReader reader);
  FunctionRef function_ref(wire::WireReader reader);
  TensorValue tensor(wire::WireReader reader);

  wire::WorkBudget nodes_{"nodes and functions", 1'000'000};
  wire::WorkBudget attributes_{"attributes", 2'000'000};
  wire::WorkBudget elements_{"elements of lists", 16'000'000};
};

}  // namespace tensormill::frontend::tensorflow
