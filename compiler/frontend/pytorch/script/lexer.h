/// Words of TorchScript's code. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tensormill::frontend::pytorch::script {

struct Token {
  enum class Kind : uint8_t { kName, kInt, kReal, kText, kMark, kLine, kIndent, kDedent, kEnd };
  Kind kind = Kind::kEnd;
  int line = 0;
  std::string text;  ///< of a text: what it says
  int64_t integer = 0;
  double real = 0;
};

/// The words of `code`, with marks where lines end and blocks begin and end, as Python has them. Throws
/// Error(kInvalidModel) that says where in `file`, also for more than 4,000,000 words.
std::vector<Token> tokens_of(std::string_view code, const std::string& file);

}  // namespace tensormill::frontend::pytorch::script
