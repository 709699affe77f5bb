/// Messages of ML Programs (MIL) out of protobuf's wire format. Thread-safety: a reader belongs to one
/// thread.
#pragma once

#include "compiler/frontend/coreml/model.h"
#include "compiler/frontend/wire/protobuf.h"
#include "compiler/frontend/wire/work_budget.h"

namespace tensormill::frontend::coreml {

class ProgramReader {
public:
  /// In the order of their names. Throws Error(kInvalidModel), Error(kNotSupported) for a function of opsets
  /// that are not known here alone.
  std::vector<Function> functions(wire::WireReader reader);

private:
  template <typename Made>
  std::pair<std::string_view, Made> map_entry(wire::WireReader entry, const char* what,
                                              Made (ProgramReader::*read)(wire::WireReader));
  Function function(wire::WireReader reader);
  NamedType named_type(wire::WireReader reader);
  ValueType value_type(wire::WireReader reader);
  TensorType tensor_type(wire::WireReader reader);
  int64_t dimension(wire::WireReader reader);
  Block block(wire::WireReader reader);
  Operation operation(wire::WireReader reader);
  std::vector<Binding> argument(wire::WireReader reader);
  Value value(wire::WireReader reader);
  void immediate(wire::WireReader reader, Value& to);
  Elements elements(wire::WireReader reader);
  void append(wire::WireReader reader, int kind, Elements& to);

  wire::WorkBudget operations_{"operations and blocks", 1'000'000};
  wire::WorkBudget values_{"operands and types", 8'000'000};
  wire::WorkBudget elements_{"elements of lists", 16'000'000};
};

}  // namespace tensormill::frontend::coreml
