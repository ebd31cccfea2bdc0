#include "qact/dist/world.h"

#include <torch/torch.h>

#include <algorithm>
#include <numeric>

#include "qact/base/fail.h"

namespace qact::dist {
namespace {

struct GatherRows : torch::autograd::Function<GatherRows> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& rows,
                            const World& world, int64_t first) {
    context->saved_data["first"] = first;
    context->saved_data["count"] = rows.size(0);
    return world.gather_rows(rows);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradient) {
    const int64_t first = context->saved_data["first"].toInt();
    const int64_t count = context->saved_data["count"].toInt();
    return {gradient[0].narrow(0, first, count), at::Tensor(), at::Tensor()};
  }
};

std::vector<int64_t> counts_of(const World& world, int64_t count) {
  std::vector<double> all(world.size(), 0.0);
  all[world.rank()] = static_cast<double>(count);
  all = world.sum(all);
  return {all.begin(), all.end()};
}

}  // namespace

World::World(c10::intrusive_ptr<c10d::ProcessGroup> group, bool restarted)
    : group_(std::move(group)),
      rank_(group_ ? group_->getRank() : 0),
      size_(group_ ? group_->getSize() : 1),
      restarted_(restarted) {}

c10::intrusive_ptr<c10d::Work> World::start_sum(at::Tensor tensor) const {
  if (alone()) return {};
  std::vector<at::Tensor> tensors = {std::move(tensor)};
  return group_->allreduce(tensors);
}

std::vector<double> World::sum(std::vector<double> values) const {
  if (alone()) return values;
  start_sum(torch::from_blob(values.data(), {static_cast<int64_t>(values.size())}, torch::kDouble))
      ->wait();
  return values;
}

bool World::any(bool value) const { return sum({value ? 1.0 : 0.0})[0] > 0; }

void World::broadcast(const std::vector<at::Tensor>& tensors) const {
  if (alone()) return;
  const torch::NoGradGuard no_grad;
  for (const at::Tensor& tensor : tensors) {
    // c10d takes contiguous tensors alone; channels-last weights are not.
    std::vector<at::Tensor> sent = {tensor.contiguous()};
    group_->broadcast(sent)->wait();
    if (!sent[0].is_same(tensor)) {
      tensor.copy_(sent[0]);
    } else if (!tensor.is_inference()) {
      tensor.unsafeGetTensorImpl()->bump_version();  // which c10d does not
    }
  }
}

at::Tensor World::gather_rows(const at::Tensor& rows) const {
  if (alone()) return rows;
  const std::vector<int64_t> counts = counts_of(*this, rows.size(0));
  const int64_t most = *std::max_element(counts.begin(), counts.end());
  std::vector<int64_t> shape = rows.sizes().vec();
  shape[0] = most;
  at::Tensor padded = at::zeros(shape, rows.options().requires_grad(false));
  padded.narrow(0, 0, rows.size(0)).copy_(rows.detach());
  std::vector<std::vector<at::Tensor>> outputs(1);
  for (int i = 0; i < size_; ++i) outputs[0].push_back(at::empty_like(padded));
  std::vector<at::Tensor> inputs = {padded};
  if (most > 0) group_->allgather(outputs, inputs)->wait();
  for (int i = 0; i < size_; ++i) outputs[0][i] = outputs[0][i].narrow(0, 0, counts[i]);
  return at::cat(outputs[0]);
}

std::vector<std::string> World::gather_texts(const std::string& text) const {
  if (alone()) return {text};
  const std::vector<int64_t> counts = counts_of(*this, static_cast<int64_t>(text.size()));
  const at::Tensor bytes = at::empty({static_cast<int64_t>(text.size())}, at::kByte);
  std::copy(text.begin(), text.end(), bytes.data_ptr<uint8_t>());
  const at::Tensor all = gather_rows(bytes);
  const auto* at = reinterpret_cast<const char*>(all.const_data_ptr<uint8_t>());
  std::vector<std::string> texts;
  for (const int64_t count : counts) {
    texts.emplace_back(at, count);
    at += count;
  }
  return texts;
}

void World::barrier() const { any(false); }

c10::intrusive_ptr<c10d::Work> World::start_barrier() const { return start_sum(at::zeros({1})); }

void World::put(const std::string& name, const std::string& text) const {
  group_->getStore()->set(name, std::vector<uint8_t>(text.begin(), text.end()));
}

std::optional<std::string> World::take(const std::string& name) const {
  const c10::intrusive_ptr<c10d::Store> store = group_->getStore();
  if (!store->check({name})) return std::nullopt;
  const std::vector<uint8_t> bytes = store->get(name);
  store->deleteKey(name);
  return std::string(bytes.begin(), bytes.end());
}

at::Tensor gather_rows_with_gradient(const World& world, const at::Tensor& rows) {
  if (world.alone()) return rows;
  const std::vector<int64_t> counts = counts_of(world, rows.size(0));
  const int64_t first = std::accumulate(counts.begin(), counts.begin() + world.rank(), int64_t{0});
  return GatherRows::apply(rows, world, first);
}

void expect_same(const World& world, const std::string& what, const std::string& text) {
  const std::vector<std::string> all = world.gather_texts(text);
  for (int i = 1; i < world.size(); ++i) {
    if (all[i] == all[0]) continue;
    const auto shown = [](const std::string& t) { return t.empty() ? "none" : t; };
    base::fail("dist", "expected ", what, " to be the same on all ranks, got ", shown(all[0]),
               " on rank 0 and ", shown(all[i]), " on rank ", i);
  }
}

void expect_same(const World& world,
                 const std::vector<std::pair<std::string, std::string>>& named) {
  std::string text;
  for (const auto& [name, value] : named) text += name + "=" + value + "\n";
  const std::vector<std::string> all = world.gather_texts(text);
  if (std::all_of(all.begin(), all.end(), [&](const auto& other) { return other == all[0]; }))
    return;
  for (const auto& [name, value] : named) expect_same(world, name, value);
}

}  // namespace qact::dist
