#include "tests/core/cases.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <thread>

#include "qact/core/cpu/dispatch.h"
#include "tests/core/narrow.h"

namespace qact::core::testing {
namespace {

constexpr unsigned char kGuard = 0xa5;

template <class Stored>
double load(const unsigned char* at) {
  Stored value;
  std::memcpy(&value, at, sizeof(value));
  if constexpr (std::is_floating_point_v<Stored>) {
    return value;
  } else {
    return widen(value);
  }
}

double load(DType dtype, const unsigned char* at) {
  switch (dtype) {
    case DType::f64:
      return load<double>(at);
    case DType::f32:
      return load<float>(at);
    case DType::bf16:
      return load<bfloat16_bits>(at);
    default:
      return load<half_bits>(at);
  }
}

void store(DType dtype, double value, unsigned char* at) {
  const float single = static_cast<float>(value);
  const auto bf16 = narrow<bfloat16_bits>(single);
  const auto half = narrow<half_bits>(single);
  switch (dtype) {
    case DType::f64:
      std::memcpy(at, &value, 8);
      break;
    case DType::f32:
      std::memcpy(at, &single, 4);
      break;
    case DType::bf16:
      std::memcpy(at, &bf16, 2);
      break;
    default:
      std::memcpy(at, &half, 2);
      break;
  }
}

}  // namespace

const char* name(Distribution distribution) {
  constexpr const char* kNames[] = {"normal",   "uniform",  "heavy-tailed", "bimodal",  "ties",
                                    "constant", "positive", "negative",     "beyond c", "far mean"};
  return kNames[static_cast<int>(distribution)];
}

const char* name(Layout layout) {
  constexpr const char* kNames[] = {"contiguous", "channels_last", "sliced", "transposed"};
  return kNames[static_cast<int>(layout)];
}

const char* name(DType dtype) {
  constexpr const char* kNames[] = {"f32", "f64", "bf16", "f16"};
  return kNames[static_cast<int>(dtype)];
}

std::vector<double> draw(Distribution distribution, int64_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::student_t_distribution<double> heavy(1.5);
  std::vector<double> out(n);
  for (double& v : out) {
    switch (distribution) {
      case Distribution::normal:
        v = normal(random);
        break;
      case Distribution::uniform:
        v = 3 * uniform(random);
        break;
      case Distribution::heavy_tailed:
        v = heavy(random);
        break;
      case Distribution::bimodal:
        v = 0.3 * normal(random) + (uniform(random) < 0.4 ? -2 : 3);
        break;
      case Distribution::ties:
        v = std::round(2 * normal(random)) / 2;
        break;
      case Distribution::constant:
        v = 1.25;
        break;
      case Distribution::positive:
        v = std::abs(normal(random)) + 0.01;
        break;
      case Distribution::negative:
        v = -std::abs(normal(random)) - 0.01;
        break;
      case Distribution::beyond_bound:
        v = 150 * normal(random);
        break;
      case Distribution::far_mean:
        v = 4000 + 2 * normal(random);
        break;
    }
  }
  return out;
}

Tensor::Tensor(const Shape& shape, DType dtype, Layout layout)
    : shape_(shape), size_(size_of(dtype)), first_(16 * size_) {
  view_.dtype = dtype;
  const int64_t b = shape.batch, c = shape.channels, s = shape.spatial;
  switch (layout) {
    case Layout::contiguous:
      view_.batch_stride = c * s, view_.channel_stride = s, view_.spatial_stride = 1;
      break;
    case Layout::channels_last:
      view_.batch_stride = c * s, view_.channel_stride = 1, view_.spatial_stride = c;
      break;
    case Layout::sliced:  // every other place of the inner channels of a wider tensor
      view_.batch_stride = (c + 3) * 2 * s, view_.channel_stride = 2 * s, view_.spatial_stride = 2;
      break;
    case Layout::transposed:
      view_.batch_stride = 1, view_.channel_stride = s * b, view_.spatial_stride = b;
      break;
  }
  const int64_t last = (b - 1) * view_.batch_stride + (c - 1) * view_.channel_stride +
                       (s - 1) * view_.spatial_stride;
  bytes_.assign(2 * first_ + (last + 1) * size_, kGuard);
}

size_t Tensor::offset(int64_t batch, int64_t channel, int64_t place) const {
  return first_ + size_ * (batch * view_.batch_stride + channel * view_.channel_stride +
                           place * view_.spatial_stride);
}

void Tensor::set(int64_t channel, const std::vector<double>& values) {
  for (int64_t i = 0; i < shape_.context_size(); ++i) {
    store(view_.dtype, values[i],
          bytes_.data() + offset(i / shape_.spatial, channel, i % shape_.spatial));
  }
}

std::vector<double> Tensor::get(int64_t channel) const {
  std::vector<double> out;
  for (int64_t i = 0; i < shape_.context_size(); ++i) {
    out.push_back(
        load(view_.dtype, bytes_.data() + offset(i / shape_.spatial, channel, i % shape_.spatial)));
  }
  return out;
}

bool Tensor::intact() const {
  std::vector<unsigned char> rest = bytes_;
  for (int64_t b = 0; b < shape_.batch; ++b) {
    for (int64_t c = 0; c < shape_.channels; ++c) {
      for (int64_t s = 0; s < shape_.spatial; ++s) {
        std::memset(rest.data() + offset(b, c, s), kGuard, size_);
      }
    }
  }
  return std::all_of(rest.begin(), rest.end(), [](unsigned char byte) { return byte == kGuard; });
}

Tensor filled(const Shape& shape, Distribution distribution, uint64_t seed, DType dtype,
              Layout layout) {
  Tensor out(shape, dtype, layout);
  for (int64_t c = 0; c < shape.channels; ++c) {
    out.set(c, draw(distribution, shape.context_size(), seed + 1000 * c));
  }
  return out;
}

Execution threads(int count) { return threads(count, cpu::choose_simd()); }

Execution threads(int count, Simd simd) {
  Execution execution;
  execution.simd = simd;
  execution.parallel = [count](int64_t items, int64_t, const auto& body) {
    std::vector<std::thread> pool;
    for (int64_t t = 0; t < count; ++t) {
      const int64_t begin = items * t / count, end = items * (t + 1) / count;
      if (begin < end) pool.emplace_back([&body, begin, end] { body(begin, end); });
    }
    for (std::thread& thread : pool) thread.join();
  };
  return execution;
}

std::vector<Simd> simd_levels() {
  std::vector<Simd> out;
  for (const Simd level : {Simd::scalar, Simd::avx2, Simd::avx512}) {
    if (cpu::supported(level)) out.push_back(level);
  }
  return out;
}

double relative_error(const std::vector<double>& a, const std::vector<double>& b) {
  double error = 0, norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    error += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return norm > 0 ? std::sqrt(error / norm) : std::sqrt(error);
}

}  // namespace qact::core::testing
