// Moves between tensors and strips against one value at a time.
#include "qact/core/cpu/moves.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <vector>

namespace qact::core::cpu {
namespace {

// Every kind of float: signs, subnormals, ties in the 16-bit types, infinities, NaN.
float awkward(size_t i) {
  constexpr uint32_t kBits[] = {0x3f800000, 0x3f808000, 0x3f818000, 0x80000000, 0x00000001,
                                0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001, 0xffffffff,
                                0x7f7fffff, 0x477fefff, 0x33000000, 0x3f801000, 0xc0490fdb};
  const uint32_t mixed = static_cast<uint32_t>(i) * 2654435761u;
  return std::bit_cast<float>(i % 3 == 0 ? kBits[i / 3 % std::size(kBits)] : mixed);
}

template <class Stored>
Stored stored(size_t i) {
  if constexpr (sizeof(Stored) == 2)
    return {static_cast<uint16_t>(i * 40503u)};
  else
    return static_cast<Stored>(awkward(i));
}

template <class Value>
bool same(const std::vector<Value>& a, const std::vector<Value>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(Value)) == 0;
}

template <Way kWay, class Stored, class Real>
void expect_plain_rows(int64_t count, int64_t channels) {
  const int64_t stride = channels + 3, pitch = count + 5;
  std::vector<Stored> tensor(count * stride + 1);
  std::vector<Real> strips(channels * pitch + 1);
  for (size_t i = 0; i < tensor.size(); ++i) tensor[i] = stored<Stored>(i);
  for (size_t i = 0; i < strips.size(); ++i) strips[i] = awkward(i + 7);
  auto plain_tensor = tensor;
  auto plain_strips = strips;
  move_rows<kWay>(Rows<Stored>{tensor.data(), stride, count, channels}, strips.data(), pitch);
  for (int64_t r = 0; r < count; ++r) {
    for (int64_t g = 0; g < channels; ++g) {
      move_value<kWay>(plain_tensor[r * stride + g], plain_strips[g * pitch + r]);
    }
  }
  EXPECT_TRUE(same(tensor, plain_tensor)) << count << " rows of " << channels;
  EXPECT_TRUE(same(strips, plain_strips)) << count << " rows of " << channels;
}

template <Way kWay, class Stored, class Real>
void expect_plain_run(int64_t size) {
  std::vector<Stored> tensor(size + 1);
  std::vector<Real> strip(size + 1);
  for (int64_t i = 0; i <= size; ++i) tensor[i] = stored<Stored>(i), strip[i] = awkward(i);
  auto plain_tensor = tensor;
  auto plain_strip = strip;
  move_run<kWay>(tensor.data(), strip.data(), size);
  for (int64_t i = 0; i < size; ++i) move_value<kWay>(plain_tensor[i], plain_strip[i]);
  EXPECT_TRUE(same(tensor, plain_tensor)) << size << " values";
  EXPECT_TRUE(same(strip, plain_strip)) << size << " values";
}

template <class Stored, class Real>
void expect_plain() {
  for (const int64_t count : {0, 1, 3, 4, 5, 8, 37}) {
    for (const int64_t channels : {1, 3, 4, 7, 16}) {
      expect_plain_rows<Way::in, Stored, Real>(count, channels);
      expect_plain_rows<Way::out, Stored, Real>(count, channels);
    }
  }
  for (const int64_t size : {0, 1, 3, 4, 7, 400}) {
    expect_plain_run<Way::in, Stored, Real>(size);
    expect_plain_run<Way::out, Stored, Real>(size);
  }
}

TEST(Moves, EqualOneValueAtATime) {
  expect_plain<float, float>();
  expect_plain<bfloat16_bits, float>();
  expect_plain<half_bits, float>();
  expect_plain<double, double>();
}

}  // namespace
}  // namespace qact::core::cpu
