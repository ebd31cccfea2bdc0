// The alias tables against the definition of each noise, drawn one by one.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "qact/corrupt/constants.h"
#include "qact/corrupt/corrupt.h"

namespace qact::corrupt {
namespace {

constexpr image::Size kSize{320, 100, 3};
constexpr int kSeverity = 4;

using Histogram = std::vector<double>;

Histogram shares(const std::vector<uint8_t>& bytes) {
  Histogram out(256);
  for (const uint8_t v : bytes) out[v] += 1.0 / static_cast<double>(bytes.size());
  return out;
}

// One value of the noise on [0, 1].
template <class Engine>
double plain(const std::string& name, double x, Engine& engine) {
  EffectParams params;
  params.severity = kSeverity;
  params.scale = Scale::imagenet;
  std::normal_distribution<double> normal;
  if (name == "gaussian_noise") return x + kGaussianNoise.at(params) * normal(engine);
  if (name == "speckle_noise") return x + x * kSpeckleNoise.at(params) * normal(engine);
  if (name == "shot_noise") {
    const double photons = kShotNoise.at(params);
    return x == 0 ? 0 : std::poisson_distribution<int>(x * photons)(engine) / photons;
  }
  std::uniform_real_distribution<double> uniform;
  if (uniform(engine) >= kImpulseNoise.at(params)) return x;
  return uniform(engine) < 0.5;
}

TEST(Noise, HasTheSharesOfItsDefinition) {
  std::mt19937_64 engine(11);
  const int64_t n = kSize.values();
  for (const std::string name :
       {"gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise"}) {
    const Corruptor corruptor(name, kSeverity, kSize, 9);
    for (const int value : {0, 1, 60, 128, 250, 255}) {
      const std::vector<uint8_t> in(n, static_cast<uint8_t>(value));
      std::vector<uint8_t> out(n), drawn(n);
      corruptor.apply(in.data(), value, out.data());
      for (uint8_t& v : drawn) {
        v = static_cast<uint8_t>(std::clamp(plain(name, value / 255.0, engine), 0.0, 1.0) * 255);
      }
      const Histogram ours = shares(out), expected = shares(drawn);
      for (int v = 0; v < 256; ++v) {
        const double share = std::max((ours[v] + expected[v]) / 2, 1.0 / static_cast<double>(n));
        EXPECT_NEAR(ours[v], expected[v], 5 * std::sqrt(2 * share / static_cast<double>(n)))
            << name << " of " << value << " to " << v;
      }
    }
  }
}

}  // namespace
}  // namespace qact::corrupt
