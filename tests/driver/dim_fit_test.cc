/// Formulas of free dims that are fitted to samples.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "compiler/plan/dim_fit.h"
#include "tests/driver/support.h"

namespace tensormill::driver_test {
namespace {

TEST(DimFit, QuotientsProductsAndOffsets) {
  std::vector<std::vector<int64_t>> samples = {{2, 9}};
  for (const int64_t step : {1, 2, 3, 5, 7, 8, 11, 13, 977, 1920}) {
    samples.push_back({2 + step, 9});
    samples.push_back({2, 9 + step});
  }
  samples.push_back({3, 11});
  plan::DimFitter fitter(samples);
  const auto check = [&](const auto& of) {
    std::vector<int64_t> values;
    for (const auto& dims : samples) values.push_back(of(dims[0], dims[1]));
    const auto formula = fitter.fit(values);
    ASSERT_TRUE(formula.has_value()) << of(2, 9);
    const std::vector<int64_t> other = {37, 101};
    EXPECT_EQ(evaluate(*formula, with_derived(other, fitter.derived())), of(37, 101));
  };
  check([](int64_t, int64_t) { return 5; });
  check([](int64_t n, int64_t) { return n; });
  check([](int64_t, int64_t h) { return 3 * h - 1; });
  check([](int64_t, int64_t h) { return (h + 1) / 2; });
  check([](int64_t, int64_t h) { return 8 * ((h + 3) / 4); });
  check([](int64_t n, int64_t h) { return n * ((h + 1) / 2) * 6; });
  check([](int64_t n, int64_t h) { return n * h * h - 1; });
  check([](int64_t n, int64_t h) { return n * ((h + 1) / 2) * 6 + 40; });
  check([](int64_t n, int64_t h) { return n + 2 * h; });
  check([](int64_t n, int64_t h) { return (h + 1) / 2 - 3 * n; });
  check([](int64_t, int64_t h) { return 2 * (h / 2) + 3; });
  check([](int64_t n, int64_t) { return 2 * (n / 2) + 5; });
  check([](int64_t n, int64_t h) { return (2 * (h / 2) + 3) * (2 * (n / 2) + 5); });
  check([](int64_t, int64_t h) { return h < 15 ? h : 15; });
  check([](int64_t n, int64_t h) { return n * (h < 15 ? h : 15); });
  std::vector<int64_t> odd;
  for (const auto& dims : samples) odd.push_back(dims[1] * dims[1] % 7);
  EXPECT_FALSE(fitter.fit(odd).has_value());
}

/// The elements of a slice of an axis, as the standard says.
std::vector<int64_t> sliced(int64_t extent, int64_t start, int64_t end, int64_t step) {
  start = start < 0 ? std::max<int64_t>(start + extent, 0) : start;
  end = end < 0 ? std::max<int64_t>(end + extent, -1) : end;
  std::vector<int64_t> elements;
  if (step < 0) start = std::min(start, extent - 1);
  for (int64_t i = start; step > 0 ? i < std::min(end, extent) : i > end; i += step) elements.push_back(i);
  return elements;
}

/// Also where the samples lie beyond the places, but for few of them.
TEST(DimFit, SlicesOfAxesThatEndBeforeTheirPlaces) {
  constexpr int64_t kEnd = int64_t{1} << 39;
  for (const std::array<int64_t, 3>& asked : {std::array<int64_t, 3>{-4, kEnd, 2},
                                              {8, 1, -3},
                                              {-6, -2, 1},
                                              {-20, 20, 1},
                                              {7, -3, -2},
                                              {2, -1, 3},
                                              {-3, -kEnd, -1},
                                              {5, -9, -2},
                                              {-7, 4, 2},
                                              {3, 6, 1}}) {
    std::vector<std::vector<int64_t>> samples;
    for (const int64_t extent :
         {24, 25, 26, 27, 29, 31, 32, 35, 37, 40, 1001, 1944, 0, 1, 2, 3, 4, 5, 6, 7, 8, 16})
      samples.push_back({extent});
    plan::SliceFact slice;
    slice.step = asked[2];
    std::vector<int64_t> extents, starts;
    std::vector<bool> have_elements;
    for (const std::vector<int64_t>& dims : samples) {
      slice.extent.push_back(dims[0]);
      slice.start.push_back(asked[0]);
      slice.end.push_back(asked[1]);
      const std::vector<int64_t> elements = sliced(dims[0], asked[0], asked[1], asked[2]);
      extents.push_back(static_cast<int64_t>(elements.size()));
      starts.push_back(elements.empty() ? 0 : elements.front());
      have_elements.push_back(!elements.empty());
    }
    plan::DimFitter fitter(samples);
    fitter.add_slice(slice);
    const auto extent = fitter.fit(extents), start = fitter.fit_some(starts, have_elements);
    ASSERT_TRUE(extent && start) << asked[0] << ":" << asked[1] << ":" << asked[2];
    for (int64_t n = 0; n < 60; ++n) {
      const std::vector<int64_t> dims = with_derived(std::vector<int64_t>{n}, fitter.derived());
      const std::vector<int64_t> elements = sliced(n, asked[0], asked[1], asked[2]);
      EXPECT_EQ(evaluate(*extent, dims), static_cast<int64_t>(elements.size())) << n << " of " << asked[0];
      if (elements.empty()) continue;
      EXPECT_EQ(evaluate(*start, dims), elements.front()) << n << " of " << asked[0];
    }
  }
}

/// Of several numbers a run works out the extents alone, not what they are made of.
TEST(DimFit, SumsAndProductsOfWhatWasNotFoundBefore) {
  std::vector<std::vector<int64_t>> samples = {{8, 8, 8}};
  for (const int64_t step : {1, 2, 3, 5, 7, 8, 11, 13, 977, 1920}) {
    for (size_t d = 0; d < 3; ++d) {
      samples.push_back(samples.front());
      samples.back()[d] += step;
    }
  }
  samples.push_back({13, 14, 15});
  samples.push_back({11, 12, 13});
  using Dims = std::vector<int64_t>;
  using Extent = std::function<int64_t(const Dims&)>;
  const auto check = [&](const std::vector<Extent>& extents) {
    plan::DimFitter fitter(samples);
    std::optional<DimFormula> formula;
    for (const Extent& of : extents) {
      std::vector<int64_t> values;
      for (const Dims& dims : samples) values.push_back(of(dims));
      formula = fitter.fit(values);
      ASSERT_TRUE(formula.has_value()) << values[0];
    }
    for (const Dims& other : {Dims{37, 101, 5}, Dims{1, 4, 300}})
      EXPECT_EQ(evaluate(*formula, with_derived(other, fitter.derived())), extents.back()(other));
  };
  const Extent sum = [](const Dims& d) { return d[0] + d[1]; };
  const Extent box = [](const Dims& d) { return d[0] * d[1]; };
  check({sum});
  check({[](const Dims& d) { return 2 * d[0] + d[1] + 3; }});
  check({[](const Dims& d) { return d[0] / 2 + (d[1] + 2) / 3 - d[2]; }});
  check({[](const Dims& d) { return d[0] * (d[0] / 2); }});
  check({[](const Dims& d) { return d[2] * (d[0] + 2 * d[1] + 1); }});
  check({sum, [](const Dims& d) { return (d[0] + d[1]) * (d[0] + 2); }});
  check({box, [](const Dims& d) { return d[0] * d[1] + d[0] + 2 * d[1]; }});
  check({box, [](const Dims& d) { return d[0] * d[1] + d[0] / 2 + d[1] + d[2]; }});
}

TEST(DimFit, FactorsOfFloat32) {
  std::vector<std::vector<int64_t>> samples = {{9, 4}};
  for (const int64_t step : {1, 2, 3, 5, 7, 8, 11, 13, 977, 1920}) {
    samples.push_back({9 + step, 4});
    samples.push_back({9, 4 + step});
  }
  plan::DimFitter fitter(samples, {0.29F, 1.3F});
  const auto check = [&](const auto& of) {
    std::vector<int64_t> values;
    for (const auto& dims : samples) values.push_back(of(dims[0], dims[1]));
    const auto formula = fitter.fit(values);
    ASSERT_TRUE(formula.has_value()) << of(9, 4);
    for (int64_t h = 9; h < 3000; ++h) {
      const std::vector<int64_t> dims = {h, 4};
      ASSERT_EQ(evaluate(*formula, with_derived(dims, fitter.derived())), of(h, 4)) << h;
    }
  };
  check([](int64_t h, int64_t) { return scaled_extent(h, 0.29F); });
  check([](int64_t h, int64_t) { return (h + 1) / 2; });
  check([](int64_t h, int64_t) { return scaled_extent((h + 1) / 2, 1.3F); });
  check([](int64_t h, int64_t) { return (scaled_extent((h + 1) / 2, 1.3F) + 3) / 4; });
  check([](int64_t h, int64_t w) { return scaled_extent(h, 0.29F) * w; });
  check([](int64_t h, int64_t w) { return scaled_extent(h, 0.29F) * w + 5; });
  check([](int64_t h, int64_t) { return h; });
  check([](int64_t h, int64_t) { return h - scaled_extent(h, 0.29F); });
  EXPECT_EQ(fitter.derived().size(), 2U);
}

TEST(DimFit, SmallQuotientsOfQuotients) {
  std::vector<std::vector<int64_t>> samples = {{9}};
  for (const int64_t step : {1, 2, 3, 4, 5, 6, 7, 8, 11, 13, 977, 1920}) samples.push_back({9 + step});
  plan::DimFitter fitter(samples);
  fitter.set_quotients({1.25F, 0.75F});
  for (const auto& of :
       {+[](int64_t h) { return (h + 1) / 2; }, +[](int64_t h) { return (h + 1) / 2 * 5 / 4; },
        +[](int64_t h) { return (h + 1) / 2 * 3 / 4; }}) {
    std::vector<int64_t> values;
    for (const auto& dims : samples) values.push_back(of(dims[0]));
    const auto formula = fitter.fit(values);
    ASSERT_TRUE(formula.has_value()) << of(9);
    for (int64_t h = 9; h < 3000; ++h) {
      const std::vector<int64_t> dims = {h};
      ASSERT_EQ(evaluate(*formula, with_derived(dims, fitter.derived())), of(h)) << h;
    }
  }
}

TEST(DimFit, BetweenTwoBounds) {
  std::vector<std::vector<int64_t>> samples = {{60}};
  for (const int64_t t : {61, 62, 63, 65, 67, 100, 1020, 1980, 1, 2, 3, 4, 5, 7, 16, 31, 33})
    samples.push_back({t});
  plan::DimFitter fitter(samples);
  const auto check = [&](const auto& of) {
    std::vector<int64_t> values;
    for (const auto& dims : samples) values.push_back(of(dims[0]));
    const auto formula = fitter.fit(values);
    ASSERT_TRUE(formula.has_value()) << of(60);
    for (int64_t t = 1; t < 3000; ++t) {
      const std::vector<int64_t> dims = {t};
      ASSERT_EQ(evaluate(*formula, with_derived(dims, fitter.derived())), of(t)) << t;
    }
  };
  check([](int64_t t) { return std::max<int64_t>(t - 5, 0); });
  check([](int64_t t) { return std::min<int64_t>(t, 12); });
  check([](int64_t t) { return std::clamp<int64_t>(t - 3, 0, 29); });
  check([](int64_t t) { return std::max<int64_t>((t - 2) / 2, 0); });
  check([](int64_t t) { return 2 * std::max<int64_t>(t - 5, 0) + t; });
  check([](int64_t t) { return t; });
  // Of samples that do not count there may be any values.
  std::vector<int64_t> values;
  std::vector<bool> counts;
  for (const auto& dims : samples) {
    counts.push_back(dims[0] > 16);
    values.push_back(dims[0] > 16 ? 3 * dims[0] - 40 : 7);
  }
  const auto formula = fitter.fit_some(values, counts);
  ASSERT_TRUE(formula.has_value());
  EXPECT_EQ(evaluate(*formula, with_derived(std::vector<int64_t>{37}, fitter.derived())), 71);
}

/// Of the few samples between two bounds quotients hold as well.
TEST(DimFit, SumsBetweenTwoBoundsComeBeforeQuotients) {
  std::vector<std::vector<int64_t>> samples = {{16}};
  for (const int64_t t : {17, 18, 19, 21, 23, 24, 27, 29, 993, 1936, 1, 2, 3, 4, 5, 7})
    samples.push_back({t});
  std::vector<int64_t> values;
  const auto of = [](int64_t t) { return std::clamp<int64_t>(t - 2, 0, 8); };
  for (const auto& dims : samples) values.push_back(of(dims[0]));
  plan::DimFitter fitter(samples);
  const auto formula = fitter.fit(values);
  ASSERT_TRUE(formula.has_value());
  for (int64_t t = 1; t < 100; ++t)
    EXPECT_EQ(evaluate(*formula, with_derived(std::vector<int64_t>{t}, fitter.derived())), of(t)) << t;
}

TEST(DimFit, SumsUpToABound) {
  std::vector<std::vector<int64_t>> samples;
  for (const int64_t step : {0, 1, 2, 3, 5, 7, 8, 11, 13, 960}) {
    samples.push_back({5 + step, 4});
    samples.push_back({5, 4 + step});
  }
  samples.push_back({7, 6});
  const auto values_of = [&](const auto& of) {
    std::vector<int64_t> values;
    for (const std::vector<int64_t>& sample : samples) values.push_back(of(sample[0] + sample[1]));
    return values;
  };
  plan::DimFitter fitter(samples);
  for (const size_t d : {0, 1}) {
    std::vector<int64_t> own;
    for (const std::vector<int64_t>& sample : samples) own.push_back(sample[d]);
    ASSERT_TRUE(fitter.fit(own));
  }
  ASSERT_TRUE(fitter.fit(values_of([](int64_t sum) { return sum; })));
  const auto least = [](int64_t sum) { return std::min<int64_t>(sum, 16); };
  const auto rest = [](int64_t sum) { return std::max<int64_t>(sum - 16, 0); };
  const std::optional<DimFormula> kept = fitter.fit(values_of(least)), cut = fitter.fit(values_of(rest));
  ASSERT_TRUE(kept && cut);
  for (const std::vector<int64_t>& dims :
       std::vector<std::vector<int64_t>>{{0, 1}, {9, 6}, {9, 8}, {300, 0}}) {
    EXPECT_EQ(evaluate(*kept, with_derived(dims, fitter.derived())), least(dims[0] + dims[1]));
    EXPECT_EQ(evaluate(*cut, with_derived(dims, fitter.derived())), rest(dims[0] + dims[1]));
  }
}

/// The windows that strides leave of a free extent, of a kernel of a free size.
TEST(DimFit, QuotientsOfWhatAFreeSizeIsTakenFrom) {
  std::vector<std::vector<int64_t>> samples;
  for (const int64_t step : {0, 1, 2, 3, 5, 7, 8, 11, 13}) {
    samples.push_back({40 + step, 3});
    samples.push_back({40, 3 + step});
  }
  // A sum of quotients, which holds along each dim alone, is none of these.
  for (const int64_t more : {1, 2, 3, 4, 9})
    for (const int64_t larger : {1, 2, 3, 4}) samples.push_back({40 + more, 3 + larger});
  samples.push_back({960, 3});
  for (const int64_t stride : {2, 3, 5}) {
    for (const int64_t dilation : {1, 2}) {
      for (const int64_t pads : {0, 1, 2, 5}) {
        const auto windows = [&](int64_t h, int64_t k) {
          return (h + pads - dilation * (k - 1) - 1) / stride + 1;
        };
        plan::DimFitter fitter(samples);
        std::vector<int64_t> h, k, values;
        for (const auto& dims : samples) {
          h.push_back(dims[0]);
          k.push_back(dims[1]);
          values.push_back(windows(dims[0], dims[1]));
        }
        ASSERT_TRUE(fitter.fit(h) && fitter.fit(k));
        const auto formula = fitter.fit(values);
        ASSERT_TRUE(formula.has_value()) << stride << " " << dilation << " " << pads;
        for (const auto& dims : samples) {
          EXPECT_EQ(evaluate(*formula, with_derived(dims, fitter.derived())), windows(dims[0], dims[1]))
              << stride << " " << dilation << " " << pads << " of " << dims[0] << " " << dims[1];
        }
        for (int64_t of = 30; of < 300; of += 7) {
          for (int64_t size = 1; size < 12; ++size) {
            const std::vector<int64_t> dims = {of, size};
            EXPECT_EQ(evaluate(*formula, with_derived(dims, fitter.derived())), windows(of, size))
                << stride << " " << dilation << " " << pads << " of " << of << " " << size;
          }
        }
      }
    }
  }
}

TEST(DimFit, RatiosOfFloat32) {
  std::vector<std::vector<int64_t>> samples = {{8, 16}};
  for (const int64_t step : {1, 2, 3, 5, 7, 8, 11, 13, 101, 977, 1920}) {
    samples.push_back({8 + step, 16});
    samples.push_back({8, 16 + step});
  }
  const auto product = [](int64_t h, int64_t k) {
    const float ratio = static_cast<float>(k) / static_cast<float>(h);
    return static_cast<int64_t>(std::floor(static_cast<float>(h) * ratio));
  };
  plan::DimFitter fitter(samples);
  std::vector<int64_t> h, k, products;
  for (const auto& dims : samples) {
    h.push_back(dims[0]);
    k.push_back(dims[1]);
    products.push_back(product(dims[0], dims[1]));
  }
  ASSERT_NE(products, k);  // 109 × (16 / 109) is below 16
  fitter.add_ratio(k, h);
  const auto formula = fitter.fit(products);
  ASSERT_TRUE(formula.has_value());
  for (int64_t of = 1; of < 500; ++of)
    for (int64_t to = 1; to < 500; to += 7) {
      const std::vector<int64_t> dims = {of, to};
      ASSERT_EQ(evaluate(*formula, with_derived(dims, fitter.derived())), product(of, to)) << of << " " << to;
    }
}

/// What all operands have, and what the longest one has.
TEST(DimFit, TheLeastAndTheLargestOfSeveral) {
  std::vector<std::vector<int64_t>> samples = {{5, 7, 6}};
  for (const int64_t step : {1, 2, 3, 5, 7, 8, 11, 13, 977, 1920}) {
    samples.push_back({5 + step, 7, 6});
    samples.push_back({5, 7 + step, 6});
    samples.push_back({5, 7, 6 + step});
  }
  samples.insert(samples.end(), {{7, 14, 13}, {14, 7, 13}, {14, 15, 8}, {10, 13, 12}});
  plan::DimFitter fitter(samples);
  std::vector<std::vector<int64_t>> dims(3);
  std::vector<int64_t> least, most;
  for (const auto& sample : samples) {
    for (size_t d = 0; d < dims.size(); ++d) dims[d].push_back(sample[d]);
    least.push_back(std::min({sample[0], sample[1] + 1, sample[2]}));
    most.push_back(std::max({sample[0], sample[1] + 1, sample[2]}));
  }
  std::vector<int64_t> longer = dims[1];
  for (int64_t& extent : longer) ++extent;
  for (const std::vector<int64_t>& known : {dims[0], dims[1], dims[2], longer})
    ASSERT_TRUE(fitter.fit(known).has_value());
  const auto lesser = fitter.fit(least), larger = fitter.fit(most);
  ASSERT_TRUE(lesser && larger);
  for (int64_t n = 0; n < 24; ++n)
    for (int64_t m = 0; m < 24; ++m)
      for (int64_t k = 0; k < 24; ++k) {
        const std::vector<int64_t> all = with_derived(std::vector<int64_t>{n, m, k}, fitter.derived());
        ASSERT_EQ(evaluate(*lesser, all), std::min({n, m + 1, k}));
        ASSERT_EQ(evaluate(*larger, all), std::max({n, m + 1, k}));
      }
}

/// Both sides of a picture keep to the smaller, or to the larger, of what each would be scaled by.
TEST(DimFit, RatiosThatSidesShare) {
  std::vector<std::vector<int64_t>> samples = {{30, 40}};
  for (const int64_t step : {1, 2, 3, 5, 7, 8, 11, 13, 157, 120}) {
    samples.push_back({30 + step, 40});
    samples.push_back({30, 40 + step});
  }
  const auto side = [](int64_t own, int64_t size, int64_t other, int64_t other_size, bool smallest) {
    const double a = static_cast<double>(size) / static_cast<double>(own);
    const double b = static_cast<double>(other_size) / static_cast<double>(other);
    return static_cast<int64_t>(
        std::round(static_cast<double>(own) * (smallest ? std::min(a, b) : std::max(a, b))));
  };
  for (const bool smallest : {true, false}) {
    plan::DimFitter fitter(samples);
    std::vector<int64_t> h, w, high, wide;
    for (const auto& dims : samples) {
      h.push_back(dims[0]);
      w.push_back(dims[1]);
      high.push_back(side(dims[0], 24, dims[1], 32, smallest));
      wide.push_back(side(dims[1], 32, dims[0], 24, smallest));
    }
    fitter.add_ratio(std::vector<int64_t>(samples.size(), 24), h);
    fitter.add_ratio(std::vector<int64_t>(samples.size(), 32), w);
    const auto of_high = fitter.fit(high), of_wide = fitter.fit(wide);
    ASSERT_TRUE(of_high.has_value() && of_wide.has_value());
    for (int64_t y = 1; y < 200; ++y) {
      for (int64_t x = 1; x < 200; x += 7) {
        const std::vector<int64_t> dims = with_derived(std::vector<int64_t>{y, x}, fitter.derived());
        ASSERT_EQ(evaluate(*of_high, dims), side(y, 24, x, 32, smallest)) << y << " " << x;
        ASSERT_EQ(evaluate(*of_wide, dims), side(x, 32, y, 24, smallest)) << y << " " << x;
      }
    }
  }
}

/// What a package does not hold is no formula.
TEST(DimFit, FormulasThatAreTooLargeAreNone) {
  constexpr size_t kDims = 9;
  std::vector<std::vector<int64_t>> samples = {std::vector<int64_t>(kDims, 7)};
  for (size_t d = 0; d < kDims; ++d) {
    for (const int64_t step : {1, 2, 5}) {
      samples.push_back(samples[0]);
      samples.back()[d] += step;
    }
  }
  plan::DimFitter fitter(samples);
  std::vector<int64_t> sum(samples.size(), 0), square, most, more;
  for (size_t d = 0; d < kDims; ++d) {
    for (size_t s = 0; s < samples.size(); ++s) sum[s] += samples[s][d];
    ASSERT_TRUE(fitter.fit(sum).has_value()) << d;
  }
  for (size_t s = 0; s < samples.size(); ++s) {
    square.push_back(sum[s] * sum[s]);
    most.push_back((int64_t{1} << 40) * samples[s][0]);
    more.push_back((int64_t{1} << 41) * samples[s][0]);
  }
  EXPECT_FALSE(fitter.fit(square).has_value());
  EXPECT_FALSE(fitter.fit(more).has_value());
  EXPECT_EQ(fitter.fit(most), (DimFormula{0, {{1, {{0, int64_t{1} << 40, 0, 1}}}}}));
}

}  // namespace
}  // namespace tensormill::driver_test
