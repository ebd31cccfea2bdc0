// No operator's result depends on the number of threads, to the last bit.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "tests/ops/calls.h"

namespace qact::tests {
namespace {

class Threads {
 public:
  explicit Threads(int count) : before_(at::get_num_threads()) { at::set_num_threads(count); }
  ~Threads() { at::set_num_threads(before_); }

 private:
  int before_;
};

// What the call returns, and what it leaves in its arguments.
std::vector<torch::Tensor> results(const OperatorCall& call, int count) {
  const Threads threads(count);
  std::vector<torch::Tensor> out;
  torch::jit::Stack stack = call.arguments;
  for (const size_t i : call.tensors()) {
    if (!call.writes(i)) continue;
    out.push_back(call.tensor(i).clone());
    stack[i] = out.back();
  }
  call.op().callBoxed(&stack);
  for (const c10::IValue& result : stack) out.push_back(result.toTensor());
  return out;
}

TEST(Threads, ChangeNoBitOfAnyOperator) {
  // Few values and many, in many channels and in one that threads must share.
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{4, 3, 5, 6}, {30, 70}, {20, 9, 33, 17}, {3, 1, 200, 300}}) {
    for (const OperatorCall& call : operator_calls(torch::kCPU, shape)) {
      const std::vector<torch::Tensor> alone = results(call, 1);
      for (const int count : {2, 3, 7}) {
        const std::vector<torch::Tensor> shared = results(call, count);
        ASSERT_EQ(shared.size(), alone.size());
        for (size_t i = 0; i < alone.size(); ++i) {
          EXPECT_TRUE(torch::equal(shared[i], alone[i]))
              << call.name << " " << shape << " " << count << " threads, result " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace qact::tests
