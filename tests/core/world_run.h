// A batch in several parts, each as a rank has it; rounds are reduced by hand.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "qact/core/world.h"
#include "tests/core/layer_run.h"

namespace qact::core::testing {

// Reduces the numbers of all ranks in place, in the order of the ranks.
template <class Number, class Reduce>
void reduce_as(const std::vector<Reduction>& ranks, const Reduce& reduce) {
  std::vector<Number> all(ranks[0].count), own(ranks[0].count);
  const size_t bytes = all.size() * sizeof(Number);
  for (size_t r = 0; r < ranks.size(); ++r) {
    std::memcpy(own.data(), ranks[r].data, bytes);
    for (size_t i = 0; i < all.size(); ++i) all[i] = r == 0 ? own[i] : reduce(all[i], own[i]);
  }
  for (const Reduction& of_rank : ranks) std::memcpy(of_rank.data, all.data(), bytes);
}

inline void reduce(const std::vector<Reduction>& ranks) {
  const auto add = [](auto a, auto b) { return a + b; };
  switch (ranks[0].kind) {
    case Reduction::Kind::max_f64:
      return reduce_as<double>(ranks, [](double a, double b) { return a > b ? a : b; });
    case Reduction::Kind::sum_f64:
      return reduce_as<double>(ranks, add);
    case Reduction::Kind::sum_i64:
      return reduce_as<uint64_t>(ranks, add);
    case Reduction::Kind::sum_i32:
      return reduce_as<uint32_t>(ranks, add);
  }
}

// Who computes.
struct WorldBackend {
  std::function<std::unique_ptr<WorldForward>(const LayerForward&, const Rank&)> forward;
  std::function<void(const LayerBackward&, double* sums)> sums;
  std::function<void(const LayerBackward&, int64_t values, const double* own, const double* all)>
      write;
};

inline WorldBackend on_cpu(const Execution& execution) {
  return {
      [=](const LayerForward& call, const Rank& rank) {
        return world_forward(call, rank, execution);
      },
      [=](const LayerBackward& call, double* sums) { world_backward_sums(call, sums, execution); },
      [=](const LayerBackward& call, int64_t values, const double* own, const double* all) {
        world_backward_write(call, static_cast<double>(values), own, all, execution);
      }};
}

struct WorldRun {
  Tensor y, grad_x;  // of the whole batch
  std::vector<uint8_t> code, level;
  std::vector<int32_t> table;
  std::vector<double> stats;
  std::vector<int64_t> context;
  std::vector<double> grad_affine;  // the sum over ranks
  int rounds = 0;
  int64_t bytes = 0;
  bool alike = true;  // whether all ranks have the same rounds and the same state

  // images: how many each rank has.
  WorldRun(Tensor& x, Tensor& grad_y, const Affines& affines, const Quantile& quantile,
           const std::vector<int64_t>& images, const WorldBackend& backend,
           Layout layout = Layout::contiguous)
      : y(x.shape(), x.view().dtype, layout), grad_x(x.shape(), x.view().dtype, layout) {
    const Shape& shape = x.shape();
    const int64_t channels = shape.channels;
    std::vector<Part> parts(images.size());
    for (size_t r = 0, first = 0; r < images.size(); first += images[r++]) {
      Part& part = parts[r];
      part.first = static_cast<int64_t>(first);
      part.shape = {images[r], channels, shape.spatial};
      part.code.resize(channels * part.shape.context_size());
      part.table.resize(channels * kCodeTableWords);
      part.stats.resize(channels * kLayerStats);
      part.context.resize(channels * kContextBins);
      LayerForward call;
      call.quantile = quantile;
      call.shape = part.shape;
      call.x = x.view().from(part.first, 0);
      call.y = y.view().from(part.first, 0);
      call.weight_in = {affines.weight_in.data()};
      call.bias_in = {affines.bias_in.data()};
      call.weight_out = {affines.weight_out.data()};
      call.bias_out = {affines.bias_out.data()};
      call.code = part.code.data();
      call.table = part.table.data();
      call.stats = part.stats.data();
      call.context = part.context.data();
      part.forward =
          backend.forward(call, {static_cast<int64_t>(r), static_cast<int64_t>(images.size())});
    }
    forward(parts);
    backward(parts, grad_y, affines, quantile, backend);
    collect(parts, channels, shape);
  }

 private:
  struct Part {
    int64_t first;
    Shape shape;
    std::unique_ptr<WorldForward> forward;
    std::vector<uint8_t> code;
    std::vector<int32_t> table;
    std::vector<double> stats, sums, affine;
    std::vector<int64_t> context;
  };

  void forward(std::vector<Part>& parts) {
    while (!parts[0].forward->done()) {
      std::vector<Round> of_ranks;
      for (Part& part : parts) {
        part.forward->count();
        of_ranks.push_back(part.forward->round());
        alike = alike && of_ranks.back().size() == of_ranks[0].size();
      }
      for (size_t i = 0; i < of_ranks[0].size() && alike; ++i) {
        std::vector<Reduction> all;
        for (const Round& round : of_ranks) {
          all.push_back(round[i]);
          alike = alike && round[i].kind == all[0].kind && round[i].count == all[0].count;
        }
        if (alike) reduce(all);
        bytes += all[0].count * (all[0].kind == Reduction::Kind::sum_i32 ? 4 : 8);
      }
      if (!alike) return;
      ++rounds;
      for (Part& part : parts) part.forward->next();
    }
    for (Part& part : parts) {
      alike = alike && part.forward->done();
      if (alike) part.forward->write();
    }
  }

  void backward(std::vector<Part>& parts, Tensor& grad_y, const Affines& affines,
                const Quantile& quantile, const WorldBackend& backend) {
    std::vector<LayerBackward> calls;
    std::vector<double> all;
    for (Part& part : parts) {
      LayerBackward call;
      call.quantile = quantile;
      call.shape = part.shape;
      call.grad_y = grad_y.view().from(part.first, 0);
      call.grad_x = grad_x.view().from(part.first, 0);
      call.weight_in = {affines.weight_in.data()};
      call.bias_in = {affines.bias_in.data()};
      call.weight_out = {affines.weight_out.data()};
      call.code = part.code.data();
      call.table = part.table.data();
      part.affine.resize(4 * part.shape.channels);
      call.grad_affine = part.affine.data();
      part.sums.resize(kWorldSums * part.shape.channels);
      backend.sums(call, part.sums.data());
      all.resize(part.sums.size());
      for (size_t i = 0; i < all.size(); ++i) all[i] += part.sums[i];
      calls.push_back(call);
    }
    const int64_t n = y.shape().context_size();
    for (size_t r = 0; r < parts.size(); ++r) {
      backend.write(calls[r], n, parts[r].sums.data(), all.data());
    }
  }

  void collect(const std::vector<Part>& parts, int64_t channels, const Shape& shape) {
    table = parts[0].table;
    stats = parts[0].stats;
    context = parts[0].context;
    grad_affine.assign(4 * channels, 0);
    code.resize(channels * shape.context_size());
    level.resize(code.size());
    for (const Part& part : parts) {
      alike = alike && context == part.context &&
              std::memcmp(stats.data(), part.stats.data(), 8 * stats.size()) == 0 &&
              table == part.table;
      for (size_t i = 0; i < grad_affine.size(); ++i) grad_affine[i] += part.affine[i];
      const int64_t own = part.shape.context_size();
      for (int64_t c = 0; c < channels; ++c) {
        const auto* of = reinterpret_cast<const CodeTable*>(table.data() + c * kCodeTableWords);
        for (int64_t i = 0; i < own; ++i) {
          const int64_t at = c * shape.context_size() + part.first * shape.spatial + i;
          code[at] = part.code[c * own + i];
          level[at] = of->level[code[at]];
        }
      }
    }
  }
};

}  // namespace qact::core::testing
