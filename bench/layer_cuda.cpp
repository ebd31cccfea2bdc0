// The fused layer in training on a GPU, next to BatchNorm2d + ReLU: times by events, the
// share of the copy bandwidth, and memory.
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>

#include "bench/layers.h"
#include "bench/validate.h"

namespace qact::bench {
namespace {

// Milliseconds on the current stream.
template <class Work>
double event_ms(const Work& work) {
  cudaEvent_t start, end;
  C10_CUDA_CHECK(cudaEventCreate(&start));
  C10_CUDA_CHECK(cudaEventCreate(&end));
  const auto stream = c10::cuda::getCurrentCUDAStream().stream();
  C10_CUDA_CHECK(cudaEventRecord(start, stream));
  work();
  C10_CUDA_CHECK(cudaEventRecord(end, stream));
  C10_CUDA_CHECK(cudaEventSynchronize(end));
  float ms = 0;
  C10_CUDA_CHECK(cudaEventElapsedTime(&ms, start, end));
  C10_CUDA_CHECK(cudaEventDestroy(start));
  C10_CUDA_CHECK(cudaEventDestroy(end));
  return ms;
}

double median_of(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

// Bytes a second of a large copy on the device, read and written counted.
double copy_bandwidth() {
  const torch::Tensor a = torch::randn({1 << 28}, torch::kCUDA);
  torch::Tensor b = torch::empty_like(a);
  std::vector<double> times;
  for (int i = 0; i < 20; ++i) times.push_back(event_ms([&] { b.copy_(a); }));
  return 2.0 * static_cast<double>(a.nbytes()) / (median_of(times) * 1e-3);
}

template <class Layer>
Step event_step(Layer layer, const torch::Tensor& input, const torch::Tensor& grad) {
  return [=]() mutable {
    const torch::Tensor x = input.detach().requires_grad_(true);
    layer->zero_grad();
    torch::Tensor y;
    const double forward = event_ms([&] { y = layer->forward(x); });
    const double backward = event_ms([&] { y.backward(grad); });
    return std::vector<double>{forward, backward, forward + backward};
  };
}

// The same work as one CUDA graph: what is left when launches cost nothing.
template <class Layer>
class Captured {
 public:
  Captured(Layer layer, const torch::Tensor& input, const torch::Tensor& grad)
      : x_(input.detach().requires_grad_(true)) {
    const auto stream = c10::cuda::getStreamFromPool();
    c10::cuda::CUDAStreamGuard guard(stream);
    const auto run = [&] {
      y_ = layer->forward(x_);
      grads_ = torch::autograd::grad({y_}, inputs(layer), {grad});
    };
    for (int i = 0; i < 3; ++i) run();
    stream.synchronize();
    graph_.capture_begin();
    run();
    graph_.capture_end();
    stream.synchronize();
  }
  double ms() {
    constexpr int kReplays = 20;
    return event_ms([&] {
             for (int i = 0; i < kReplays; ++i) graph_.replay();
           }) /
           kReplays;
  }

 private:
  std::vector<torch::Tensor> inputs(Layer& layer) const {
    std::vector<torch::Tensor> out = layer->parameters();
    out.push_back(x_);
    return out;
  }
  at::cuda::CUDAGraph graph_;
  torch::Tensor x_, y_;
  std::vector<torch::Tensor> grads_;
};

// The most that was allocated beyond the input during one step.
template <class Layer>
double peak_mib(Layer layer, const torch::Tensor& input, const torch::Tensor& grad) {
  using namespace c10::cuda::CUDACachingAllocator;
  const auto device = input.device().index();
  const torch::Tensor x = input.detach().requires_grad_(true);
  torch::cuda::synchronize();
  constexpr auto kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  const int64_t before = getDeviceStats(device).allocated_bytes[kAll].current;
  resetPeakStats(device);
  layer->forward(x).backward(grad);
  torch::cuda::synchronize();
  return static_cast<double>(getDeviceStats(device).allocated_bytes[kAll].peak - before) /
         (1 << 20);
}

void time_case(const torch::Tensor& x, const char* dtype, const char* layout,
               const Settings& settings, double bandwidth, Report& report) {
  validate(x.size(1), x);
  const torch::Tensor grad = torch::randn_like(x);
  nn::QuantileActivation ours(x.size(1));
  BatchNormRelu peer(x.size(1));
  ours->to(x.device());
  peer->to(x.device());
  const auto times =
      interleave({event_step(ours, x, grad), event_step(peer, x, grad)}, settings.repeats);
  const double elements = static_cast<double>(x.numel()),
               size = static_cast<double>(x.element_size());
  // Forward: x three times, y, a level byte. Backward: dy, x and the byte twice, dx.
  const double bytes[] = {elements * (4 * size + 1), elements * (5 * size + 2),
                          elements * (9 * size + 3)};
  const char* passes[] = {"forward", "backward", "both"};
  for (int pass = 0; pass < 3; ++pass) {
    char note[80];
    std::snprintf(note, sizeof note, "%.0f%% of the copy bandwidth",
                  100 * bytes[pass] / (times[0][pass] * 1e-3) / bandwidth);
    report.add({"layer", x.sizes().vec(), dtype, layout, passes[pass], times[0][pass], kPeer,
                times[1][pass], note, "cuda"});
  }
  Captured<nn::QuantileActivation> our_graph(ours, x, grad);
  Captured<BatchNormRelu> peer_graph(peer, x, grad);
  std::vector<double> our_ms, peer_ms;
  for (int i = 0; i < 9; ++i) our_ms.push_back(our_graph.ms()), peer_ms.push_back(peer_graph.ms());
  report.add({"layer in a CUDA graph", x.sizes().vec(), dtype, layout, "both", median_of(our_ms),
              kPeer, median_of(peer_ms), "", "cuda"});
  char line[120];
  std::snprintf(line, sizeof line, "         peak memory beyond the input: %.1f MiB; peer %.1f MiB",
                peak_mib(ours, x, grad), peak_mib(peer, x, grad));
  report.say(line);
}

// Exact levels, which the public reference sorts for.
void time_exact(const torch::Tensor& x, const Settings& settings, Report& report) {
  const auto options = nn::QuantileActivationOptions(x.size(1)).algorithm("exact");
  validate(options, x);
  const torch::Tensor grad = torch::randn_like(x);
  nn::QuantileActivation ours(options);
  BatchNormRelu peer(x.size(1));
  ours->to(x.device());
  peer->to(x.device());
  const auto times =
      interleave({event_step(ours, x, grad), event_step(peer, x, grad)}, settings.repeats);
  report.add({"layer, exact levels", x.sizes().vec(), "float32", "contiguous", "both", times[0][2],
              kPeer, times[1][2], "", "cuda"});
}

}  // namespace

void layer_cuda(const Settings& settings, Report& report) {
  if (!torch::cuda::is_available()) return;
  torch::manual_seed(0);
  const double bandwidth = copy_bandwidth();
  char line[80];
  std::snprintf(line, sizeof line, "CUDA: a copy moves %.2f TB/s", bandwidth * 1e-12);
  report.say(line);
  const std::vector<std::vector<int64_t>> shapes = {{128, 64, 32, 32}, {128, 128, 16, 16},
                                                    {128, 256, 8, 8},  {128, 512, 4, 4},
                                                    {256, 64, 56, 56}, {1024, 64, 32, 32}};
  for (const auto& shape : shapes) time_exact(torch::randn(shape, torch::kCUDA), settings, report);
  for (const auto& shape : shapes) {
    for (const auto type : {torch::kFloat, torch::kBFloat16}) {
      for (const auto format :
           {torch::MemoryFormat::Contiguous, torch::MemoryFormat::ChannelsLast}) {
        const torch::Tensor x = torch::randn(shape, torch::kCUDA).to(type).contiguous(format);
        time_case(x, type == torch::kFloat ? "float32" : "bfloat16",
                  format == torch::MemoryFormat::Contiguous ? "contiguous" : "channels_last",
                  settings, bandwidth, report);
      }
    }
  }
}

}  // namespace qact::bench
