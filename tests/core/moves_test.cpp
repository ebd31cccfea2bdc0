// Moves between tensors and strips against one value at a time.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <type_traits>
#include <vector>

#include "qact/core/cpu/dispatch.h"
#include "qact/core/cpu/kernels.h"
#include "tests/core/narrow.h"

namespace qact::core::cpu {
namespace {

using testing::bfloat16_bits, testing::half_bits, testing::narrow, testing::widen;

// Every kind of float: signs, subnormals, ties in the 16-bit types, infinities, NaN.
float awkward(size_t i) {
  constexpr uint32_t kBits[] = {0x3f800000, 0x3f808000, 0x3f818000, 0x80000000, 0x00000001,
                                0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001, 0xffffffff,
                                0x7f7fffff, 0x477fefff, 0x33000000, 0x3f801000, 0xc0490fdb,
                                0x33000001, 0x387fe000, 0x387ff000, 0x477ff000, 0xb3c00000};
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

template <class Stored>
constexpr DType dtype_of() {
  return std::is_same_v<Stored, double>          ? DType::f64
         : std::is_same_v<Stored, bfloat16_bits> ? DType::bf16
         : std::is_same_v<Stored, half_bits>     ? DType::f16
                                                 : DType::f32;
}

template <class Value>
bool same(const std::vector<Value>& a, const std::vector<Value>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(Value)) == 0;
}

// visit(place in the tensor, place in the strips)
template <class Visit>
void for_each_value(const RunBlock& runs, const Visit& visit) {
  for (int64_t i = 0; i < runs.images; ++i) {
    for (int64_t c = 0; c < runs.channels; ++c) {
      for (int64_t v = 0; v < runs.size; ++v) {
        visit(i * runs.image_stride + c * runs.channel_stride + v * runs.value_stride,
              c * runs.pitch + i * runs.size + v);
      }
    }
  }
}

template <class Stored, class Real>
void expect_plain(const RunBlock& runs) {
  size_t room = 1, strips_room = 1;
  for_each_value(runs, [&](int64_t at, int64_t strip) {
    room = std::max<size_t>(room, at + 2);
    strips_room = std::max<size_t>(strips_room, strip + 2);
  });
  std::vector<Stored> tensor(room);
  std::vector<Real> strips(strips_room);
  for (size_t i = 0; i < room; ++i) tensor[i] = stored<Stored>(i);
  for (size_t i = 0; i < strips_room; ++i) strips[i] = awkward(i + 7);
  auto plain_strips = strips;
  auto plain_tensor = tensor;
  for_each_value(runs, [&](int64_t at, int64_t strip) {
    if constexpr (std::is_same_v<Stored, Real>) {
      plain_strips[strip] = tensor[at];
      plain_tensor[at] = strips[strip];
    } else {
      plain_strips[strip] = widen(tensor[at]);
      plain_tensor[at] = narrow<Stored>(strips[strip]);
    }
  });
  for (const Simd simd : {Simd::scalar, Simd::avx2, Simd::avx512}) {
    if (!supported(simd)) continue;
    const auto& kernels = tensor_kernels<Real>(simd);
    auto packed = strips;
    kernels.pack(tensor.data(), dtype_of<Stored>(), runs, packed.data());
    EXPECT_TRUE(same(packed, plain_strips))
        << name(simd) << ", " << runs.images << " x " << runs.channels << " x " << runs.size;
    auto unpacked = tensor;
    kernels.unpack(strips.data(), runs, dtype_of<Stored>(), unpacked.data());
    EXPECT_TRUE(same(unpacked, plain_tensor))
        << name(simd) << ", " << runs.images << " x " << runs.channels << " x " << runs.size;
  }
}

template <class Stored, class Real>
void expect_plain() {
  for (const int64_t images : {1, 3}) {
    for (const int64_t channels : {1, 3, 4, 7, 8, 16, 17, 35}) {
      for (const int64_t size : {1, 3, 8, 15, 16, 17, 37, 64}) {
        const int64_t pitch = images * size + 5;
        const int64_t row = channels + 3, run = size + 2;
        // Neighbouring channels; neighbouring values; neither.
        expect_plain<Stored, Real>({images, channels, size, size * row + 1, 1, row, pitch});
        expect_plain<Stored, Real>({images, channels, size, channels * run, run, 1, pitch});
        expect_plain<Stored, Real>({images, channels, size, 2 * size * row, 2, 2 * row, pitch});
      }
    }
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
