// Cost per element of the fused layer, forward and backward, from 10^3 to 10^7 values per
// channel: flat if nothing in it grows faster than the context. The tensor keeps its size, so
// that caches and fresh memory cost every context the same.
#include <cstdio>

#include "bench/layers.h"

namespace qact::bench {

void curve(const Settings& settings, Report& report) {
  torch::manual_seed(0);
  const torch::Tensor values = torch::randn({20'000'000});
  for (int64_t n = 1000; n <= 10'000'000; n *= 10) {
    const torch::Tensor x = values.view({n / 100, values.numel() / n, 10, 10});
    const auto times = time_side_by_side(x, std::min(settings.repeats, 10));
    const double elements = static_cast<double>(x.numel());
    char note[64];
    std::snprintf(note, sizeof note, "%.2f ns per element, peer %.2f", 1e6 * times[0][2] / elements,
                  1e6 * times[1][2] / elements);
    report.add({"curve", x.sizes().vec(), "float32", "contiguous", "both", times[0][2], kPeer,
                times[1][2], note});
  }
}

}  // namespace qact::bench
