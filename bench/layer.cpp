// The fused layer in training, at the shapes of a ResNet on 32 x 32 images.
#include <cstdio>

#include "bench/layers.h"
#include "qact/ops/quantile_layer_impl.h"

namespace qact::bench {
namespace {

// What the forward pass leaves for the backward pass. BatchNorm2d + ReLU keep the input and the
// output.
void count_saved(const torch::Tensor& x, Report& report) {
  const auto [y, code, table, stats, context] =
      ops::quantile_layer_forward(x, {}, {}, /*keep=*/true);
  const double elements = static_cast<double>(x.numel());
  const double tables = static_cast<double>(table.nbytes() + stats.nbytes()) / elements;
  const double codes = static_cast<double>(code.nbytes()) / elements;
  const double input = ops::kept_sizes(x, {}).x ? x.element_size() : 0;
  char line[160];
  std::snprintf(line, sizeof line,
                "         saved for backward: %.2f bytes per element (input %.0f, codes %.0f, "
                "tables %.2f); peer %.2f",
                input + codes + tables, input, codes, tables,
                2.0 * static_cast<double>(x.element_size()));
  report.say(line);
}

void time_layer(const torch::Tensor& x, const char* dtype, const char* layout, int repeats,
                Report& report) {
  const auto times = time_side_by_side(x, repeats);
  const char* passes[] = {"forward", "backward", "both"};
  for (int pass = 0; pass < 3; ++pass) {
    report.add({"layer", x.sizes().vec(), dtype, layout, passes[pass], times[0][pass], kPeer,
                times[1][pass], ""});
  }
}

}  // namespace

void layer(const Settings& settings, Report& report) {
  torch::manual_seed(0);
  const std::vector<std::vector<int64_t>> shapes = {
      {128, 64, 32, 32}, {128, 128, 16, 16}, {128, 256, 8, 8}, {128, 512, 4, 4}};
  for (const auto& shape : shapes) {
    const torch::Tensor x = torch::randn(shape);
    time_layer(x, "float32", "contiguous", settings.repeats, report);
    count_saved(x, report);
  }
  for (const auto& shape : shapes) {
    const torch::Tensor x = torch::randn(shape);
    time_layer(x.contiguous(torch::MemoryFormat::ChannelsLast), "float32", "channels_last",
               settings.repeats, report);
    time_layer(x.to(torch::kBFloat16), "bfloat16", "contiguous", settings.repeats, report);
  }
}

}  // namespace qact::bench
