// The emulator itself: right kernels give their results in every schedule, and wrong ones are
// found.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <set>
#include <stdexcept>
#include <vector>

#include "tests/core/cuda/emulator/cuda_runtime.h"

namespace qact::emulator {
namespace {

constexpr Schedule kSchedules[] = {{Schedule::in_order, 0},
                                   {Schedule::reversed, 0},
                                   {Schedule::shuffled, 1},
                                   {Schedule::shuffled, 2}};
constexpr int kThreads = 96;

struct Options {
  unsigned blocks = 1, cluster = 1;
  bool early = false;
  size_t shared = 0;
};

template <class... Parameters>
void start(const Options& options, void (*kernel)(Parameters...), const Parameters&... arguments) {
  cudaLaunchAttribute attribute{};
  attribute.id = options.early ? cudaLaunchAttributeProgrammaticStreamSerialization
                               : cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {options.cluster, 1, 1};
  attribute.val.programmaticStreamSerializationAllowed = options.early;
  const cudaLaunchConfig_t config{
      dim3(options.blocks), dim3(kThreads), options.shared, nullptr, &attribute, 1};
  ASSERT_EQ(cudaLaunchKernelEx(&config, kernel, arguments...), cudaSuccess);
}

// What run() leaves in `results`, in every schedule.
std::set<std::vector<double>> outcomes(size_t results, const std::function<void(double*)>& run) {
  std::set<std::vector<double>> out;
  for (const Schedule& schedule : kSchedules) {
    device().schedule = schedule;
    std::vector<double> found(results, -1);
    run(found.data());
    device().synchronize();
    for (double& v : found) v = std::isnan(v) ? -2 : v;
    out.insert(found);
  }
  device().schedule = {};
  return out;
}

std::string message_of(const std::function<void()>& run) {
  try {
    run();
    device().synchronize();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

// The block's sum, by shared memory; without the barrier, by luck.
template <bool kBarrier>
__global__ void sum_block(double* result) {
  __shared__ unsigned warp[kThreads / 32];
  unsigned v = threadIdx.x;
  for (int mask = 16; mask > 0; mask /= 2) v += __shfl_xor_sync(0xffffffffu, v, mask);
  if (threadIdx.x % 32 == 0) warp[threadIdx.x / 32] = v;
  if (kBarrier) __syncthreads();
  if (threadIdx.x == 0) result[blockIdx.x] = warp[0] + warp[1] + warp[2];
}

TEST(Emulator, ShowsAMissingBarrier) {
  const auto run = [](auto kernel) {
    return outcomes(3, [&](double* to) { start({3}, kernel, to); });
  };
  const double sum = kThreads * (kThreads - 1) / 2;
  EXPECT_EQ(run(sum_block<true>), (std::set<std::vector<double>>{{sum, sum, sum}}));
  EXPECT_GT(run(sum_block<false>).size(), 1u);
}

__global__ void count_and_list(double* result) {
  __shared__ unsigned count, list[kThreads];
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  list[atomicAdd(&count, 1u)] = threadIdx.x;
  const bool any = __syncthreads_or(threadIdx.x == 5), all = __syncthreads_and(threadIdx.x != 5);
  if (threadIdx.x == 0) result[0] = count + 1000 * any + 2000 * all, result[1] = list[0];
}

TEST(Emulator, CountsExactlyInAnyOrder) {
  const auto found = outcomes(2, [](double* to) { start({}, count_and_list, to); });
  EXPECT_GT(found.size(), 1u);  // whoever came first
  for (const auto& each : found) EXPECT_EQ(each[0], kThreads + 1000);
}

__global__ void warp_functions(double* result) {
  const unsigned lane = threadIdx.x % 32, full = 0xffffffffu;
  const double shifted = __shfl_up_sync(full, 0.5 * lane, 3);
  const uint64_t first = __shfl_sync(full, (uint64_t{1} << 40) + lane, 2);
  const unsigned odd = __ballot_sync(full, lane % 2);
  __syncwarp();
  result[threadIdx.x] = shifted + static_cast<double>(first - (uint64_t{1} << 40)) +
                        (odd == 0xaaaaaaaau) + __reduce_add_sync(full, lane) +
                        __reduce_min_sync(full, lane + 7) + __reduce_max_sync(full, lane);
}

TEST(Emulator, HasWarpFunctions) {
  const auto found = outcomes(kThreads, [](double* to) { start({}, warp_functions, to); });
  ASSERT_EQ(found.size(), 1u);
  for (int t = 0; t < kThreads; ++t) {
    const int lane = t % 32, from = lane < 3 ? lane : lane - 3;
    EXPECT_EQ((*found.begin())[t], 0.5 * from + 2 + 1 + 496 + 7 + 31);
  }
}

// Blocks give each other their rank; without the last barrier, a block may be gone.
template <bool kBarrier>
__global__ void exchange_ranks(double* result) {
  __shared__ unsigned from[4];
  const unsigned rank = __clusterRelativeBlockRank();
  __cluster_barrier_arrive();
  __cluster_barrier_wait();
  if (threadIdx.x < 4) {
    *static_cast<unsigned*>(__cluster_map_shared_rank(&from[rank], threadIdx.x)) = 1u << 4 * rank;
  }
  if (kBarrier) {
    __cluster_barrier_arrive();
    __cluster_barrier_wait();
  }
  if (threadIdx.x == 0) result[blockIdx.x] = from[0] + from[1] + from[2] + from[3];
}

TEST(Emulator, RunsClusters) {
  const auto run = [](auto kernel) {
    return outcomes(8, [&](double* to) { start({8, 4}, kernel, to); });
  };
  EXPECT_EQ(run(exchange_ranks<true>),
            (std::set<std::vector<double>>{std::vector<double>(8, 0x1111)}));
  EXPECT_NE(message_of([&] { run(exchange_ranks<false>); }).find("of the cluster has ended"),
            std::string::npos);
  device().schedule = {};
}

__global__ void write_one(double* to) { to[threadIdx.x] = 1; }
template <bool kWait>
__global__ void add_one(double* to) {
  if (kWait) cudaGridDependencySynchronize();
  to[threadIdx.x] += 1;
}

// One that starts early reads what was there before, unless it waits.
TEST(Emulator, StartsDependentKernelsEarly) {
  const auto run = [](auto kernel) {
    return outcomes(kThreads, [&](double* to) {
      start({}, write_one, to);
      start({.early = true}, kernel, to);
    });
  };
  EXPECT_EQ(run(add_one<true>), (std::set<std::vector<double>>{std::vector<double>(kThreads, 2)}));
  EXPECT_EQ(run(add_one<false>), (std::set<std::vector<double>>{std::vector<double>(kThreads, 1)}));
}

__global__ void read_shared(double* to, bool write) {
  __shared__ float value[kThreads];
  __shared__ double wide[kThreads];
  if (write) value[threadIdx.x] = 1, wide[threadIdx.x] = 1;
  to[2 * threadIdx.x] = value[threadIdx.x];
  to[2 * threadIdx.x + 1] = wide[threadIdx.x];
}

TEST(Emulator, StartsSharedMemoryAsNan) {
  const auto found = outcomes(2 * kThreads, [](double* to) { start({}, read_shared, to, false); });
  EXPECT_EQ(found, (std::set<std::vector<double>>{std::vector<double>(2 * kThreads, -2)}));
}

__global__ void part_ways(double*) {
  if (threadIdx.x < 40) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}
__global__ void wait_in_part(double*) {
  if (threadIdx.x % 32 < 20) __syncwarp();
  __syncthreads();
}

TEST(Emulator, NamesThreadsThatMissEachOther) {
  EXPECT_NE(message_of([] {
              start<double*>({}, part_ways, nullptr);
            }).find("threads meet at two places, emulator_test.cpp:"),
            std::string::npos);
  EXPECT_NE(message_of([] {
              start<double*>({}, wait_in_part, nullptr);
            }).find("waits in a warp, emulator_test.cpp:"),
            std::string::npos);
}

TEST(Emulator, RefusesLaunchesThatNoCardWouldTake) {
  const auto launched = [](dim3 blocks, unsigned threads, size_t shared) {
    const cudaLaunchConfig_t config{blocks, dim3(threads), shared, nullptr, nullptr, 0};
    return cudaLaunchKernelEx(&config, write_one, static_cast<double*>(nullptr));
  };
  EXPECT_EQ(launched(dim3(1), 1025, 0), cudaErrorInvalidValue);
  EXPECT_EQ(launched(dim3(1, 65536), 32, 0), cudaErrorInvalidValue);
  EXPECT_EQ(launched(dim3(1), 32, 49 * 1024), cudaErrorInvalidValue);
  EXPECT_EQ(launched(dim3(0), 32, 0), cudaErrorInvalidValue);
}

TEST(Emulator, RoundsAsTold) {
  EXPECT_EQ(__float2int_rd(-2.5f), -3);
  EXPECT_EQ(__float2int_rd(1e20f), 2147483647);
  EXPECT_EQ(__float2int_rd(std::nanf("")), 0);
  EXPECT_EQ(__umulhi(0x80000000u, 6), 3u);
}

}  // namespace
}  // namespace qact::emulator
