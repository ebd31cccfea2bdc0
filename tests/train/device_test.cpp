#include "qact/train/device.h"

#include <c10/core/impl/FakeGuardImpl.h>
#include <gtest/gtest.h>

#include <thread>

namespace qact::train {
namespace {

// No device of torch's own, so that its stand-in is in nobody's way.
constexpr auto kType = c10::DeviceType::FPGA;
using Guard = c10::impl::FakeGuardImpl<kType>;
C10_REGISTER_GUARD_IMPL(FPGA, Guard)

TEST(Device, WithoutAnIndexIsThisThreadsCurrentOne) {
  Guard::setDeviceIndex(2);
  EXPECT_EQ(with_index(kType), c10::Device(kType, 2));
  EXPECT_EQ(with_index({kType, 1}), c10::Device(kType, 1));
  EXPECT_EQ(with_index(c10::kCPU), c10::Device(c10::kCPU));
  std::jthread([] { EXPECT_EQ(with_index(kType), c10::Device(kType, 0)); });
}

}  // namespace
}  // namespace qact::train
