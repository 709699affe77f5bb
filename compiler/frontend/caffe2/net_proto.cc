// NetDef: operators with their operands and arguments, out of protobuf's wire format.
#include "compiler/frontend/caffe2/model.h"
#include "compiler/frontend/wire/protobuf.h"
#include "compiler/frontend/wire/work_budget.h"
#include "runtime/base/text.h"

namespace tensormill::frontend::caffe2 {

using wire::WireReader;

namespace {

class NetReader {
public:
  Net net(WireReader reader);

private:
  Operator op(WireReader reader);
  Argument argument(WireReader reader);

  wire::WorkBudget operators_{"operators", 1'000'000};
  wire::WorkBudget names_{"names and arguments", 8'000'000};
};

/// A name, which errors and graphs say.
std::string_view utf8_name(WireReader& reader, const char* what) {
  const std::string_view text = reader.bytes(what);
  if (!is_utf8(text)) reader.fail(std::string(what) + " is not UTF-8");
  return text;
}

Argument NetReader::argument(WireReader reader) {
  names_.spend(1);
  Argument to;
  while (const int field = reader.next()) {
    if (field == 1) to.name = utf8_name(reader, "an argument's name");
    if (field == 2) to.real = static_cast<double>(reader.fixed_float("f"));
    if (field == 3) to.integer = reader.int64("i");
    if (field == 4) to.text = reader.bytes("s");
    if (field == 5) reader.append_floats(to.reals, "floats");
    if (field == 6) reader.append_varints(to.integers, "ints");
    if (field == 7) {
      names_.spend(1);
      to.texts.push_back(reader.bytes("strings"));
    }
  }
  return to;
}

Operator NetReader::op(WireReader reader) {
  operators_.spend(1);
  Operator to;
  while (const int field = reader.next()) {
    if (field == 1) {
      names_.spend(1);
      to.inputs.push_back(utf8_name(reader, "an input"));
    }
    if (field == 2) {
      names_.spend(1);
      to.outputs.push_back(utf8_name(reader, "an output"));
    }
    if (field == 3) to.name = utf8_name(reader, "an operator's name");
    if (field == 4) to.type = utf8_name(reader, "an operator's type");
    if (field == 5) to.arguments.push_back(argument(reader.message("an argument")));
  }
  return to;
}

Net NetReader::net(WireReader reader) {
  Net to;
  while (const int field = reader.next()) {
    if (field == 1) to.name = utf8_name(reader, "the net's name");
    if (field == 2) to.operators.push_back(op(reader.message("an operator")));
    if (field == 7) {
      names_.spend(1);
      to.inputs.push_back(utf8_name(reader, "external_input"));
    }
    if (field == 8) {
      names_.spend(1);
      to.outputs.push_back(utf8_name(reader, "external_output"));
    }
  }
  return to;
}

}  // namespace

const Argument* Operator::find(std::string_view argument) const {
  for (const Argument& each : arguments)
    if (each.name == argument) return &each;
  return nullptr;
}

Net read_net(std::string_view bytes) { return NetReader().net(WireReader(bytes, bytes.data(), 0)); }

}  // namespace tensormill::frontend::caffe2
