// Diagonals of matrices: taken out, put in, alone.
#include <algorithm>

#include "compiler/build/compose.h"
#include "compiler/frontend/tensorflow/node_context.h"

namespace tensormill::frontend::tensorflow {

namespace {

/// The diagonals `low` to `high` of a matrix of rows x columns as TensorFlow packs them: a row each, the
/// highest first, at its left or right end where it is shorter than the longest. Alone, a diagonal has no
/// axis of rows.
struct Band {
  int64_t low = 0, high = 0;
  bool is_left_above = true, is_left_below = true;
  ir::SymInt rows = 1, columns = 1, longest = 1;

  int64_t count() const { return high - low + 1; }
};

/// Numbers of places, all of i64.
class PlaceNumbers {
public:
  explicit PlaceNumbers(NodeContext& node) : c_(node) {}
  V number(int64_t value) { return c_.ints({value}, {}); }
  V extent(const ir::SymInt& value) { return c_.dims({value}, {}); }
  /// How long diagonals are.
  V lengths(const Band& band, V diagonals) {
    const V below = c_.binary("min", diagonals, number(0)), above = c_.binary("max", diagonals, number(0));
    return c_.binary("min", c_.add(below, extent(band.rows)), c_.sub(extent(band.columns), above));
  }
  /// At which place of its row each begins.
  V begins(const Band& band, V diagonals) {
    const V right = c_.sub(extent(band.longest), lengths(band, diagonals));
    const V zero = number(0);
    V begins = right;
    if (band.is_left_above) begins = c_.where(c_.binary("greater_equal", diagonals, zero), zero, begins);
    if (band.is_left_below) begins = c_.where(c_.binary("less_equal", diagonals, zero), zero, begins);
    return begins;
  }

private:
  Compose c_;
};

/// What operand `at` says of the band of a matrix, and the attribute align, which old forms have not.
Band band_of(NodeContext& node, size_t at, const ir::SymInt& rows, const ir::SymInt& columns) {
  Band band;
  band.rows = rows;
  band.columns = columns;
  if (node.num_inputs() > at) {
    const ir::Ints k = node.known_ints(at, "k");
    if (k.empty() || k.size() > 2 || k.front() > k.back()) node.invalid("k is " + to_string(k));
    band.low = k.front();
    band.high = k.back();
  }
  constexpr int64_t kMost = 1 << 12;
  if (band.count() > kMost) node.unsupported("k", "so many diagonals are not implemented");
  const std::string usual = node.op().ends_with("V3") ? "RIGHT_LEFT" : "LEFT_LEFT";
  const std::string align = node.op().ends_with("V3") ? node.text("align", usual) : usual;
  const size_t middle = align.find('_');
  if (middle == std::string::npos) node.invalid("align is \"" + align + "\"");
  band.is_left_above = align.substr(0, middle) == "LEFT";
  band.is_left_below = align.substr(middle + 1) == "LEFT";
  band.longest = min(rows + std::min<int64_t>(band.high, 0), columns - std::max<int64_t>(band.low, 0));
  return band;
}

/// Of each element of the matrix its place in the packed diagonals, 0 outside of the band; and whether it is
/// in it.
struct InMatrix {
  V places, is_inside;
};
InMatrix in_matrix(NodeContext& node, const Band& band) {
  Compose c(node);
  PlaceNumbers of(node);
  const V row = c.positions(band.rows, 0, 2), column = c.positions(band.columns, 1, 2);
  const V diagonal = c.sub(column, row);
  const V is_inside = c.binary("and", c.binary("greater_equal", diagonal, of.number(band.low)),
                               c.binary("less_equal", diagonal, of.number(band.high)));
  const V along = c.add(c.binary("min", row, column), of.begins(band, diagonal));
  const V place = c.add(c.mul(c.sub(of.number(band.high), diagonal), of.extent(band.longest)), along);
  return {c.where(is_inside, place, of.number(0)), is_inside};
}

/// Elements of the last axes, which become one, at the places of a matrix.
V taken(NodeContext& node, V x, size_t axes, V places) {
  Compose c(node);
  const ir::SymShape shape = node.shape(x), own = node.shape(places);
  ir::SymShape flat(shape.begin(), shape.end() - static_cast<std::ptrdiff_t>(axes)), result = flat;
  const ir::SymInt count =
      num_elements(ir::SymShape(shape.end() - static_cast<std::ptrdiff_t>(axes), shape.end()));
  // Where there is no element, none is taken that counts.
  if (same(count, 0)) {
    result.insert(result.end(), own.begin(), own.end());
    return c.filled(node.dtype(x), result, 0);
  }
  flat.push_back(count);
  result.insert(result.end(), own.begin(), own.end());
  const auto last = static_cast<int64_t>(flat.size()) - 1;
  return c.reshape(c.gather(c.reshape(x, flat), c.reshape(places, {num_elements(own)}), last), result);
}

/// The number that stands where no diagonal is.
V padding_of(NodeContext& node, size_t operand, V like) {
  Compose c(node);
  if (node.num_inputs() <= operand) return c.number(like, 0);
  return c.reshape(node.input(operand), {});
}

/// Whether the operand holds a band of several diagonals, in an axis of their own.
size_t packed_axes(NodeContext& node, const Band& band, V packed) {
  const size_t axes = band.count() > 1 ? 2 : 1;
  const ir::SymShape shape = node.shape(packed);
  if (shape.size() < axes) node.invalid("diagonals of shape " + to_string(shape));
  if (axes == 2 && !ir::demand(ir::Relation::kEqual, shape[shape.size() - 2], band.count()))
    node.invalid(to_string(shape) + " for " + std::to_string(band.count()) + " diagonals");
  return axes;
}

}  // namespace

// Operands: diagonals, k, rows, columns, padding; -1 rows or columns: as few as there may be.
void convert_matrix_diag(NodeContext& node) {
  Compose c(node);
  const V packed = node.input(0);
  if (node.rank(packed) < 1) node.invalid("the input has no axis");
  Band band = band_of(node, 1, 1, 1);
  const size_t axes = packed_axes(node, band, packed);
  band.longest = node.shape(packed).back();
  const auto given = [&](size_t operand, const char* name) {
    return node.num_inputs() > operand ? node.known_int(operand, name) : ir::SymInt(-1);
  };
  const ir::SymInt rows = given(2, "num_rows"), columns = given(3, "num_cols");
  const ir::SymInt least_rows = band.longest - std::min<int64_t>(band.high, 0),
                   least_columns = band.longest + std::max<int64_t>(band.low, 0);
  const bool has_rows = !same(rows, -1), has_columns = !same(columns, -1);
  band.rows = has_rows ? rows : has_columns ? least_rows : max(least_rows, least_columns);
  band.columns = has_columns ? columns : has_rows ? least_columns : band.rows;
  const ir::SymInt longest =
      min(band.rows + std::min<int64_t>(band.high, 0), band.columns - std::max<int64_t>(band.low, 0));
  if (!ir::demand(ir::Relation::kEqual, longest, band.longest))
    node.invalid("diagonals of " + to_string(band.longest) + " in a matrix of " +
                 to_string(ir::SymShape{band.rows, band.columns}));
  const InMatrix at = in_matrix(node, band);
  node.set_output(0,
                  c.where(at.is_inside, taken(node, packed, axes, at.places), padding_of(node, 4, packed)));
}

// Operands: matrices, diagonals, k.
void convert_matrix_set_diag(NodeContext& node) {
  Compose c(node);
  const V x = node.input(0), packed = node.input(1);
  const ir::SymShape shape = node.shape(x);
  if (shape.size() < 2) node.invalid("the input has rank " + std::to_string(shape.size()));
  const Band band = band_of(node, 2, shape[shape.size() - 2], shape.back());
  const size_t axes = packed_axes(node, band, packed);
  if (node.rank(packed) - static_cast<int64_t>(axes) != node.rank(x) - 2 ||
      !ir::demand(ir::Relation::kEqual, node.shape(packed).back(), band.longest))
    node.invalid("diagonals of shape " + to_string(node.shape(packed)) + " for " + to_string(shape));
  const InMatrix at = in_matrix(node, band);
  node.set_output(0, c.where(at.is_inside, taken(node, packed, axes, at.places), x));
}

// Operands: matrices, k, padding.
void convert_matrix_diag_part(NodeContext& node) {
  Compose c(node);
  PlaceNumbers of(node);
  const V x = node.input(0);
  const ir::SymShape shape = node.shape(x);
  if (shape.size() < 2) node.invalid("the input has rank " + std::to_string(shape.size()));
  const Band band = band_of(node, 1, shape[shape.size() - 2], shape.back());
  // The main diagonal has no end that is padded.
  const V diagonal = c.sub(of.number(band.high), c.positions(band.count(), 0, 2));
  const V along = c.sub(c.positions(band.longest, 1, 2), of.begins(band, diagonal));
  const V is_inside = c.binary("and", c.binary("greater_equal", along, of.number(0)),
                               c.binary("less", along, of.lengths(band, diagonal)));
  const V row = c.sub(along, c.binary("min", diagonal, of.number(0)));
  const V column = c.add(along, c.binary("max", diagonal, of.number(0)));
  V places = c.where(is_inside, c.add(c.mul(row, of.extent(band.columns)), column), of.number(0));
  places = c.expand(places, {band.count(), band.longest});
  V y = taken(node, x, 2, places);
  if (band.count() > 1) y = c.where(is_inside, y, padding_of(node, 2, x));
  node.set_output(0, band.count() > 1 ? y : c.squeeze(y, node.rank(y) - 2));
}

}  // namespace tensormill::frontend::tensorflow
