// Which SIMD level is chosen, and what QACT_SIMD may say.
#include "qact/core/cpu/dispatch.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

namespace qact::core::cpu {
namespace {

bool all(Simd) { return true; }
bool no_avx512(Simd level) { return level != Simd::avx512; }
bool scalar_only(Simd level) { return level == Simd::scalar; }

std::string message(const char* wanted, bool (*has)(Simd)) {
  try {
    choose_simd(wanted, has);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(Dispatch, ChoosesTheBestLevel) {
  EXPECT_EQ(choose_simd(nullptr, all), Simd::avx512);
  EXPECT_EQ(choose_simd("", no_avx512), Simd::avx2);
  EXPECT_EQ(choose_simd(nullptr, scalar_only), Simd::scalar);
}

TEST(Dispatch, ObeysTheOverride) {
  EXPECT_EQ(choose_simd("scalar", all), Simd::scalar);
  EXPECT_EQ(choose_simd("avx2", all), Simd::avx2);
  EXPECT_EQ(choose_simd("avx512", all), Simd::avx512);
}

TEST(Dispatch, RefusesALevelThatTheCpuLacks) {
  EXPECT_EQ(message("avx512", no_avx512),
            "[QACT_SIMD] expected a level that this CPU has, at most avx2, got avx512");
  EXPECT_EQ(message("avx2", scalar_only),
            "[QACT_SIMD] expected a level that this CPU has, at most scalar, got avx2");
}

TEST(Dispatch, RefusesAnUnknownLevel) {
  EXPECT_EQ(message("sse9", all), "[QACT_SIMD] expected scalar, avx2 or avx512, got 'sse9'");
  EXPECT_EQ(message("AVX2", all), "[QACT_SIMD] expected scalar, avx2 or avx512, got 'AVX2'");
}

TEST(Dispatch, ReadsTheEnvironment) {
  const char* before = std::getenv("QACT_SIMD");
  const std::string kept = before ? before : "";
  setenv("QACT_SIMD", "scalar", 1);
  EXPECT_EQ(choose_simd(), Simd::scalar);
  setenv("QACT_SIMD", "none", 1);
  EXPECT_THROW(choose_simd(), std::runtime_error);
  if (before) {
    setenv("QACT_SIMD", kept.c_str(), 1);
  } else {
    unsetenv("QACT_SIMD");
  }
}

}  // namespace
}  // namespace qact::core::cpu
