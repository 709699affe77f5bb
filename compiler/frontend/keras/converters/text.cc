// Words and numbers of a vocabulary, and texts that are split into words.
#include "compiler/build/text/text.h"

#include <algorithm>
#include <charconv>

#include "compiler/build/text/crossing.h"
#include "compiler/build/text/grams.h"
#include "compiler/build/text/lookup.h"
#include "compiler/frontend/keras/converters/categories.h"
#include "compiler/frontend/keras/layer_context.h"
#include "runtime/base/text.h"

namespace tensormill::frontend::keras {

namespace {

/// What a layer looks up: its words, and what stands before them.
struct Vocabulary {
  std::vector<std::string> words;
  std::string mask, unknown;
  bool has_mask = false;  ///< 0 stands for the mask
  int64_t unknowns = 1;   ///< numbers for what is no word

  int64_t first() const { return unknowns + (has_mask ? 1 : 0); }
  int64_t count() const { return first() + static_cast<int64_t>(words.size()); }
};

std::string word_of(const LayerContext& context, const Json& json) {
  if (json.is_string()) return json.get<std::string>();
  if (!json.is_number_integer()) context.invalid("option vocabulary has what is neither word nor integer");
  return std::to_string(json.get<int64_t>());
}

/// Those of the configuration, or of the file beside it that `adapt` left; words that stand for the mask and
/// for what is no word may come first.
std::vector<std::string> words_of(LayerContext& context, const Vocabulary& vocabulary) {
  std::vector<std::string> words;
  const Json& given = context.config().at("vocabulary");
  if (given.is_array()) {
    for (const Json& each : given) words.push_back(word_of(context, each));
  } else if (given.is_string()) {
    context.unsupported("option vocabulary", "a file that is not in the archive");
  } else {
    const std::optional<std::string_view> file = context.vocabulary_file();
    if (!file)
      context.unsupported("option vocabulary", "the layer has none: call adapt() before the model is saved");
    std::string_view rest = *file;
    while (true) {
      const size_t end = std::min(rest.find('\n'), rest.size());
      words.emplace_back(rest.substr(0, end));
      if (end == rest.size()) break;
      rest.remove_prefix(end + 1);
    }
  }
  std::vector<std::string> special(vocabulary.has_mask ? 1 : 0, vocabulary.mask);
  special.resize(static_cast<size_t>(vocabulary.first()), vocabulary.unknown);
  const bool has_special =
      words.size() >= special.size() && std::equal(special.begin(), special.end(), words.begin());
  if (has_special) words.erase(words.begin(), words.begin() + vocabulary.first());
  return words;
}

/// Integers of a vocabulary of numbers.
std::vector<int64_t> numbers_of(LayerContext& context, const std::vector<std::string>& words) {
  std::vector<int64_t> numbers;
  for (const std::string& word : words) {
    int64_t number = 0;
    const auto parsed = std::from_chars(word.data(), word.data() + word.size(), number);
    if (parsed.ec != std::errc() || parsed.ptr != word.data() + word.size())
      context.invalid("\"" + word.substr(0, 40) + "\" of the vocabulary is no integer");
    numbers.push_back(number);
  }
  return numbers;
}

/// The number of each word or integer x.
V looked_up(LayerContext& context, V x, const Vocabulary& vocabulary, bool is_text) {
  Compose c(context);
  if (vocabulary.unknowns == 0)
    context.unsupported("option num_oov_indices", "a vocabulary that refuses other words is not implemented");
  std::vector<std::string> keys = vocabulary.words;
  std::vector<int64_t> values;
  for (int64_t i = vocabulary.first(); i < vocabulary.count(); ++i) values.push_back(i);
  if (vocabulary.has_mask) {
    keys.push_back(vocabulary.mask);
    values.push_back(0);
  }
  V unknown = c.ints({vocabulary.first() - vocabulary.unknowns}, {});
  V other = unknown;
  if (vocabulary.unknowns > 1) {
    const bool hashes = is_text || context.config().text("oov_method", "floormod") == "farmhash";
    const V place = hashes
                        ? build::hashed_text(context, build::text_of_numbers(context, x), vocabulary.unknowns)
                        : context.add("mod", {c.cast(x, DType::kInt64), c.ints({vocabulary.unknowns}, {})});
    other = c.add(place, unknown);
  }
  const V found = is_text ? build::found_string(context, x, keys)
                          : build::found_integer(context, x, numbers_of(context, keys));
  const auto count = static_cast<int64_t>(keys.size());
  values.push_back(-1);
  const V number = c.gather(c.ints(values, {count + 1}), found, 0);
  return c.where(c.binary("less", number, c.ints({0}, {})), other, number);
}

/// Words of numbers.
V looked_back(LayerContext& context, V x, const Vocabulary& vocabulary) {
  std::vector<std::string> words(static_cast<size_t>(vocabulary.first()), vocabulary.unknown);
  if (vocabulary.has_mask) words[0] = vocabulary.mask;
  words.insert(words.end(), vocabulary.words.begin(), vocabulary.words.end());
  ir::Ints keys = Compose(context).count_to(static_cast<int64_t>(words.size()));
  words.push_back(vocabulary.unknown);
  return Compose(context).gather(build::text_constant(context, words), build::found_integer(context, x, keys),
                                 0);
}

/// Weights of words, what is no word having their mean.
std::vector<double> word_weights(LayerContext& context, const Vocabulary& vocabulary) {
  if (!context.config().has("idf_weights"))
    context.unsupported("option idf_weights", "weights of words that adapt() counted are not implemented");
  ir::CheckedList<double> given = context.config().numbers("idf_weights");
  if (given.size() != vocabulary.words.size())
    context.invalid("option idf_weights has " + std::to_string(given.size()) + " numbers for " +
                    std::to_string(vocabulary.words.size()) + " words");
  double sum = 0;
  for (const double each : given) sum += each;
  given.insert(given.begin(), static_cast<size_t>(vocabulary.first()),
               sum / static_cast<double>(given.size()));
  return given;
}

/// Numbers [batch,n] or [batch] as the layer's output mode has them; where `is_there` says, unless it is
/// kAbsent.
V encoded_words(LayerContext& context, V numbers, V is_there, const Vocabulary& vocabulary,
                const std::string& mode) {
  Compose c(context);
  if (context.config().flag("sparse", false))
    context.unsupported("option sparse", "sparse results are not implemented");
  int64_t tokens = vocabulary.count();
  if (context.config().flag("pad_to_max_tokens", false)) tokens = context.config().integer("max_tokens");
  const bool is_weighted = mode == "tf_idf";
  // What is not there is a category behind all others.
  V categories = numbers;
  if (is_there != ir::kAbsent) categories = c.where(is_there, numbers, c.ints({tokens}, {}));
  V hot = encoded_categories(context, categories, tokens + (is_there != ir::kAbsent ? 1 : 0),
                             is_weighted ? "count" : mode);
  if (is_there != ir::kAbsent) hot = c.slice(hot, context.rank(hot) - 1, 0, tokens);
  if (!is_weighted) return c.cast(hot, DType::kInt64);
  std::vector<double> weights = word_weights(context, vocabulary);
  weights.resize(static_cast<size_t>(tokens), 0);
  return c.mul(hot, c.doubles(c.dtype(hot), weights, {tokens}));
}

}  // namespace

void convert_lookup(LayerContext& context) {
  const LayerConfig& config = context.config();
  const bool is_text = context.class_name() == "StringLookup";
  const std::string mode = config.text("output_mode", "int");
  const bool is_inverse = config.flag("invert", false);
  config.skip("vocabulary_dtype");
  config.skip("oov_method");
  if (config.has("salt")) context.unsupported("option salt", "it is not implemented");
  for (const char* option : {"encoding", "max_tokens", "vocabulary_size", "pad_to_max_tokens", "sparse"})
    config.skip(option);
  Vocabulary vocabulary;
  vocabulary.unknowns = config.integer("num_oov_indices", 1);
  if (vocabulary.unknowns < 0 || vocabulary.unknowns > build::kMaxListed)
    context.invalid("option num_oov_indices");
  const auto special = [&](const char* option, const char* usual) {
    return config.has(option) ? word_of(context, config.at(option)) : std::string(usual);
  };
  vocabulary.has_mask = config.has("mask_token") && mode == "int";
  vocabulary.mask = special("mask_token", "");
  vocabulary.unknown = special("oov_token", is_text ? "[UNK]" : "-1");
  vocabulary.words = words_of(context, vocabulary);
  config.skip("idf_weights");
  const V x = context.raw(0);
  if (build::is_text(context, x) != (is_text && !is_inverse))
    context.invalid(std::string("its input holds ") + (is_text && !is_inverse ? "no strings" : "strings"));
  if (is_inverse) {
    const V words = looked_back(context, x, vocabulary);
    return context.set_output(is_text ? words : build::numbers_of_text(context, words, DType::kInt64));
  }
  const V numbers = looked_up(context, x, vocabulary, is_text);
  context.set_output(mode == "int" ? numbers
                                   : encoded_words(context, numbers, ir::kAbsent, vocabulary, mode));
}

namespace {

/// N-grams of as many lengths are refused.
constexpr size_t kMostNeighbours = 64;

/// What Keras' rules make of texts before they are split.
V standardized(LayerContext& context, V x) {
  const Json& rule = context.config().at("standardize");
  if (rule.is_null()) return x;
  const std::string name = rule.is_string() ? rule.get<std::string>() : "";
  const bool lowers = name == "lower" || name == "lower_and_strip_punctuation";
  const bool strips = name == "strip_punctuation" || name == "lower_and_strip_punctuation";
  if (!lowers && !strips)
    context.unsupported("option standardize", "a function of one's own is not implemented");
  if (lowers) x = context.add("change_text", {x}, {{"how", std::string("ascii_lower")}});
  if (!strips) return x;
  const std::string marks = R"([!"#$%&()\*\+,-\./:;<=>?@\[\\\]^_`{|}~\'])";
  return context.add("replace_text", {x},
                     {{"pattern", marks}, {"rewrite", std::string()}, {"all", int64_t{1}}});
}

/// The words or letters of texts, or what their neighbours make.
build::TextParts parts_of(LayerContext& context, V x) {
  const LayerConfig& config = context.config();
  const std::string split = config.has("split") ? config.text("split", "") : "";
  if (split != "whitespace" && split != "character")
    context.unsupported("option split", "another rule than white space and letters is not implemented");
  const build::TextParts parts =
      split == "character" ? build::letter_parts(context, x) : build::split_texts(context, x, "", -1);
  if (!config.has("ngrams") || config.at("ngrams") == Json(false)) return parts;
  ir::Ints lengths = config.list("ngrams");
  if (config.at("ngrams").is_number_integer()) {
    const int64_t most = lengths[0];
    lengths.clear();
    for (int64_t length = 1; length <= std::min(most, int64_t{kMostNeighbours}); ++length)
      lengths.push_back(length);
  }
  if (lengths.size() >= kMostNeighbours)
    context.unsupported("option ngrams", "of so many lengths they are not implemented");
  return build::gram_parts(context, parts, lengths, " ");
}

}  // namespace

void convert_text_vectorization(LayerContext& context) {
  const LayerConfig& config = context.config();
  for (const char* option :
       {"encoding", "max_tokens", "vocabulary_size", "pad_to_max_tokens", "sparse", "idf_weights"})
    config.skip(option);
  if (config.flag("ragged", false)) context.unsupported("option ragged", "it is not implemented");
  const std::string mode = config.text("output_mode", "int");
  V x = context.raw(0);
  if (!build::is_text(context, x)) context.invalid("its input holds no strings");
  ir::SymShape shape = build::model_shape(context, x);
  if (shape.size() == 2 && same(shape[1], 1)) x = build::reshaped_text(context, x, {shape[0]});
  if (build::model_shape(context, x).size() != 1)
    context.unsupported("input", "texts of shape " + to_string(shape) + " are not implemented");
  Compose c(context);
  const build::TextParts split = parts_of(context, standardized(context, x));
  Vocabulary vocabulary;
  vocabulary.has_mask = mode == "int";
  vocabulary.unknown = "[UNK]";
  vocabulary.words = words_of(context, vocabulary);
  const V numbers = looked_up(context, split.parts, vocabulary, true);
  const bool has_length = config.has("output_sequence_length");
  if (mode != "int")
    return context.set_output(encoded_words(context, numbers, split.is_there, vocabulary, mode));
  if (!has_length)
    context.unsupported("option output_sequence_length",
                        "results as wide as the longest text are not implemented: set it");
  const V none = c.ints({0}, {});
  context.set_output(build::of_columns(context, c.where(split.is_there, numbers, none),
                                       config.integer("output_sequence_length"), none));
}

// The bucket of each word, or of each integer's decimal form.
void convert_hashing(LayerContext& context) {
  const LayerConfig& config = context.config();
  config.skip("sparse");
  std::vector<int64_t> key;
  if (config.has("salt")) key = config.integers("salt", 2);
  const std::string mode = config.text("output_mode", "int");
  const int64_t buckets = config.integer("num_bins");
  if (buckets < 1) context.invalid("option num_bins is " + std::to_string(buckets));
  Compose c(context);
  const V texts = build::text_of_numbers(context, context.raw(0));
  const bool has_mask = config.has("mask_value");
  V place = c.ints({0}, {});
  if (has_mask && buckets == 1) {
    place = c.filled(DType::kInt64, build::model_shape(context, texts), 0);
  } else {
    place = build::hashed_text(context, texts, buckets - (has_mask ? 1 : 0), key);
  }
  if (has_mask) {
    const V found = build::found_string(context, texts, {word_of(context, config.at("mask_value"))});
    place = c.where(c.binary("equal", found, c.ints({0}, {})), c.ints({0}, {}), c.plus(place, 1));
  }
  context.set_output(mode == "int" ? place : encoded_categories(context, place, buckets, mode));
}

// The bucket of each row's words or integers together.
void convert_hashed_crossing(LayerContext& context) {
  const LayerConfig& config = context.config();
  config.skip("sparse");
  const std::string mode = config.text("output_mode", "int");
  const int64_t buckets = config.integer("num_bins");
  if (buckets < 1) context.invalid("option num_bins is " + std::to_string(buckets));
  Compose c(context);
  std::vector<V> tables;
  ir::SymShape shape;
  for (size_t i = 0; i < context.num_inputs(); ++i) {
    const V x = context.raw(i);
    shape = build::model_shape(context, x);
    if (shape.empty() || shape.size() > 2)
      context.unsupported("input", "features of shape " + to_string(shape) + " are not implemented");
    const ir::SymShape table{shape[0], 1};
    tables.push_back(build::is_text(context, x) ? build::reshaped_text(context, x, table)
                                                : c.reshape(x, table));
  }
  const V crossed =
      build::crossed_tables(context, tables, build::kCrossingKey, static_cast<uint64_t>(buckets));
  const V place = c.reshape(crossed, shape);
  context.set_output(mode == "int" ? place : encoded_categories(context, place, buckets, mode));
}

}  // namespace tensormill::frontend::keras
