// The options that operators share.
#pragma once

#include <cstdint>
#include <string_view>

namespace qact::ops {

// How a value is ranked in its context; see core/quantile.h for what each means.
struct QuantileOptions {
  int64_t levels = 100;
  double bound = 100.0;
  double positive_share = 0.5;
  double bandwidth = 0.5;
  std::string_view algorithm = "auto";  // or exact, binned
};

}  // namespace qact::ops
