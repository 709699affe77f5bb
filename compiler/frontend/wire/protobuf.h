/// Protobuf's wire format over bytes in memory, field by field, on protobuf's CodedInputStream. Nested
/// messages are views into the same bytes. Thread-safety: belongs to one thread.
#pragma once

#include <google/protobuf/io/coded_stream.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tensormill::frontend::wire {

/// Messages in one another, at most: a graph in an attribute of a node of a graph … is the deepest thing in a
/// model.
inline constexpr int kMaxNesting = 100;

class WireReader {
public:
  /// `base`: the start of the file, for offsets in messages. Throws Error(kInvalidModel).
  WireReader(std::string_view bytes, const char* base, int depth);

  /// Advances to the next field, stepping over the one before where nobody has read it: its number, or 0 at
  /// the end of the message.
  int next();
  /// The value of the current field; each throws when the wire type does not fit, naming `what`.
  uint64_t varint(const char* what);
  int64_t int64(const char* what) { return static_cast<int64_t>(varint(what)); }
  int32_t int32(const char* what) { return static_cast<int32_t>(varint(what)); }
  float fixed_float(const char* what);
  double fixed_double(const char* what);
  std::string_view bytes(const char* what);
  std::string string(const char* what) { return std::string(bytes(what)); }
  /// A reader of the nested message.
  WireReader message(const char* what);
  /// Repeated scalars, packed or one by one.
  void append_varints(std::vector<int64_t>& values, const char* what);
  void append_uint64s(std::vector<uint64_t>& values, const char* what);
  void append_floats(std::vector<float>& values, const char* what);
  void append_doubles(std::vector<double>& values, const char* what);
  [[noreturn]] void fail(const std::string& what) const;

private:
  void skip();
  void expect(int wire_type, const char* what);
  template <typename Read>
  void each_packed(int scalar_wire_type, const char* what, Read&& read);

  std::string_view bytes_;
  const char* base_;
  int depth_;
  google::protobuf::io::CodedInputStream stream_;
  int field_ = 0;
  int wire_type_ = 0;
  bool is_read_ = true;
};

}  // namespace tensormill::frontend::wire
