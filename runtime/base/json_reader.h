/// JSON (RFC 8259) as events, read in one pass: time is linear in the text, and memory is that of one token
/// and of the member names of the objects that are open. Strict: UTF-8 without lone surrogates, no member
/// twice, nothing behind the value, no words for NaN and infinity. RapidJSON reads; json_reader.cc alone
/// includes it. Thread-safety: a reader, its text and its events belong to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/json.h"

namespace tensormill {

/// What a text may have. A string that is longer than `token_bytes` is noticed before it is stored.
struct JsonLimits {
  uint64_t bytes = uint64_t{1} << 30;        ///< in all
  uint64_t token_bytes = uint64_t{1} << 30;  ///< of a string, and of blanks in a row
  uint64_t values = uint64_t{1} << 24;       ///< in all, at any depth; names of members are none
  int depth = 64;                            ///< of arrays and objects in each other
};

/// Digits and signs of one number. More would be the work of nobody who wants a double.
inline constexpr size_t kMaxNumberBytes = 4096;

/// A JSON text that comes in pieces.
class JsonText {
public:
  virtual ~JsonText() = default;
  /// The next piece, valid until the next call; empty at the end, and from then on. What it throws ends the
  /// reading: the place to notice that a client has gone.
  virtual std::string_view next() = 0;
};

/// A text that is all there.
class WholeJson : public JsonText {
public:
  explicit WholeJson(std::string_view text) : text_(text) {}
  std::string_view next() override { return std::exchange(text_, {}); }

private:
  std::string_view text_;
};

/// What stands in a text, in its order. What an event throws ends the reading. Views are valid during the
/// call.
class JsonEvents {
public:
  virtual ~JsonEvents() = default;
  virtual void null() = 0;
  virtual void boolean(bool value) = 0;
  /// As it is written, so that nothing is rounded that must not be (number_text.h).
  virtual void number(std::string_view text) = 0;
  virtual void string(std::string_view text) = 0;
  virtual void begin_object() = 0;
  virtual void key(std::string_view name) = 0;
  virtual void end_object() = 0;
  virtual void begin_array() = 0;
  virtual void end_array() = 0;
};

class JsonReader {
public:
  /// Borrows both.
  JsonReader(JsonText& text, JsonEvents& events, const JsonLimits& limits = {});
  ~JsonReader();
  JsonReader(const JsonReader&) = delete;
  JsonReader& operator=(const JsonReader&) = delete;

  /// Reads the whole text. Throws Error(kInvalidJson) with the byte and, where there is one, the JSON
  /// pointer, Error(kTooLarge) past a limit but for the depth, and what the text and the events throw.
  void read();
  /// Bytes that were read up to now, for events that count.
  uint64_t offset() const;

private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Makes a Json of events. A number is an integer where it is written as one and 64 bits hold it, else a
/// double.
class JsonBuilder : public JsonEvents {
public:
  void null() override { place() = nullptr; }
  void boolean(bool value) override { place() = value; }
  /// Throws Error(kInvalidJson) for one outside the range of doubles.
  void number(std::string_view text) override;
  void string(std::string_view text) override { place() = std::string(text); }
  void begin_object() override { open(Json::object()); }
  void key(std::string_view name) override { name_ = name; }
  void end_object() override { open_.pop_back(); }
  void begin_array() override { open(Json::array()); }
  void end_array() override { open_.pop_back(); }

  /// Whether a value is complete.
  bool done() const { return begun_ && open_.empty(); }
  /// What is there up to now; objects and arrays that are open have a part of their members.
  const Json& partial() const { return root_; }
  /// What was built; the builder is fresh afterwards.
  Json take();

private:
  Json& place();
  void open(Json container);

  Json root_;
  bool begun_ = false;
  std::string name_;
  std::vector<Json*> open_;
};

/// As parse_json(text), within these limits.
Json parse_json(std::string_view text, const JsonLimits& limits);

}  // namespace tensormill
