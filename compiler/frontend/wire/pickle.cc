#include "compiler/frontend/wire/pickle.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <set>

#include "runtime/base/error.h"

namespace tensormill::frontend::wire {

namespace {

constexpr size_t kMaxImports = 1000, kMaxNameBytes = 1024;

/// What follows an opcode: so many bytes, a line or two, or bytes behind a length of so many.
enum class Argument : uint8_t { kUnknown, kNone, kFixed, kLine, kLines, kCounted };
struct Opcode {
  Argument argument = Argument::kUnknown;
  uint8_t bytes = 0;
  bool is_text = false;
};

consteval std::array<Opcode, 256> make_opcodes() {
  std::array<Opcode, 256> table{};
  const auto set = [&](std::string_view codes, Argument argument, uint8_t bytes, bool is_text = false) {
    for (const char code : codes) table[static_cast<unsigned char>(code)] = {argument, bytes, is_text};
  };
  set("(.012NQRabdeltosu])}", Argument::kNone, 0);
  set("\x81\x85\x86\x87\x88\x89\x8f\x90\x91\x92\x93\x94\x97\x98", Argument::kNone, 0);
  set("FILPSgp", Argument::kLine, 0);
  set("V", Argument::kLine, 0, true);
  set("ci", Argument::kLines, 0);
  set("Khq\x80\x82", Argument::kFixed, 1);
  set("M\x83", Argument::kFixed, 2);
  set("Jjr\x84", Argument::kFixed, 4);
  set("G\x95", Argument::kFixed, 8);
  set("C\x8a", Argument::kCounted, 1);
  set("U\x8c", Argument::kCounted, 1, true);
  set("B\x8b", Argument::kCounted, 4);
  set("TX", Argument::kCounted, 4, true);
  set("\x8e\x96", Argument::kCounted, 8);
  set("\x8d", Argument::kCounted, 8, true);
  return table;
}
constexpr std::array<Opcode, 256> kOpcodes = make_opcodes();
constexpr char kStop = '.', kStackGlobal = '\x93';

class PickleWalk {
public:
  explicit PickleWalk(std::string_view bytes) : bytes_(bytes) {}

  std::vector<std::string> imports() {
    for (;;) {
      const char code = take(1).front();
      if (code == kStop) return {imports_.begin(), imports_.end()};
      if (code == kStackGlobal) add(texts_[0], texts_[1]);
      argument(kOpcodes[static_cast<unsigned char>(code)]);
    }
  }

private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::kInvalidModel, "pickle, at byte " + std::to_string(at_) + ": " + what);
  }

  std::string_view take(uint64_t count) {
    if (count > bytes_.size() - at_) fail("it ends early");
    at_ += count;
    return bytes_.substr(at_ - count, count);
  }

  std::string_view line() {
    const size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) fail("a line has no end");
    const std::string_view text = take(end - at_);
    take(1);
    return text;
  }

  void argument(const Opcode& opcode) {
    switch (opcode.argument) {
      case Argument::kNone:
        return;
      case Argument::kFixed:
        take(opcode.bytes);
        return;
      case Argument::kLine: {
        const std::string_view text = line();
        if (opcode.is_text) keep(text);
        return;
      }
      case Argument::kLines: {
        const std::string_view module = line();
        add(module, line());
        return;
      }
      case Argument::kCounted: {
        uint64_t count = 0;
        std::memcpy(&count, take(opcode.bytes).data(), opcode.bytes);
        const std::string_view text = take(count);
        if (opcode.is_text) keep(text);
        return;
      }
      case Argument::kUnknown:
        --at_;
        fail("no opcode");
    }
  }

  /// The two texts that stand last: what STACK_GLOBAL takes where it is written as Python writes it.
  void keep(std::string_view text) {
    texts_[0] = texts_[1];
    texts_[1] = text;
  }

  void add(std::string_view module, std::string_view name) {
    if (module.size() + name.size() > kMaxNameBytes) fail("a name of more than 1,024 bytes");
    if (imports_.size() < kMaxImports) imports_.insert(std::string(module) + "." + std::string(name));
  }

  std::string_view bytes_;
  size_t at_ = 0;
  std::array<std::string_view, 2> texts_;
  std::set<std::string> imports_;
};

}  // namespace

std::vector<std::string> pickle_imports(std::string_view bytes) { return PickleWalk(bytes).imports(); }

}  // namespace tensormill::frontend::wire
