// The forward pass over several ranks where values lie on a device, which counts and writes
// (world_device.h). What is copied to the host and back are rounds and tables, but for contexts
// that are gathered.
#include "qact/core/world_device.h"

#include <utility>
#include <vector>

#include "qact/core/cpu/world_rounds.h"
#include "qact/core/cpu/world_solve.h"

namespace qact::core {
namespace {

using namespace cpu;

// The call's vectors and results, on the host.
struct HostSide {
  std::vector<double> vectors[4], stats;
  std::vector<int32_t> table;
  std::vector<int64_t> context;
  LayerForward call;

  HostSide(const LayerForward& given, WorldDevice& device) : call(given) {
    const int64_t channels = given.shape.channels;
    ChannelVector* const all[] = {&call.weight_in, &call.bias_in, &call.weight_out, &call.bias_out};
    for (int i = 0; i < 4; ++i) {
      if (!all[i]->data) continue;
      vectors[i].resize(channels);
      device.to_host(vectors[i].data(), all[i]->data, channels * (all[i]->is_double ? 8 : 4));
      all[i]->data = vectors[i].data();
    }
    stats.resize(channels * kLayerStats);
    table.resize(channels * kCodeTableWords);
    context.resize(given.context ? channels * kContextBins : 0);
    call.stats = stats.data();
    call.table = table.data();
    call.context = given.context ? context.data() : nullptr;
    call.x.data = call.y.data = nullptr;
    call.code = nullptr;
  }
};

// A base, so that it is there before WorldRounds, which keeps the call.
struct WithHostSide {
  HostSide host_;
  WithHostSide(const LayerForward& call, WorldDevice& device) : host_(call, device) {}
};

class DeviceForward final : WithHostSide, public WorldRounds<float> {
 public:
  DeviceForward(const LayerForward& call, const Rank& rank, WorldDevice& device,
                const Execution& execution)
      : WithHostSide(call, device),
        WorldRounds<float>(host_.call, rank, execution),
        on_device_(call),
        device_(device),
        bins_(channels_.size()) {}

  Round round() override { return round_; }
  void count() override { round_ = counted(); }

  void next() override {
    const Round own = WorldRounds<float>::round();
    for (size_t i = 0; i < own.size(); ++i) {
      device_.to_host(own[i].data, round_[i].data,
                      own[i].count * (own[i].kind == Reduction::Kind::sum_i32 ? 4 : 8));
    }
    if (stage_ == Stage::gather) code_.resize(channels_.size() * call_.shape.context_size());
    call_.code = code_.data();
    WorldRounds<float>::next();
  }

  void write() override {
    const WorldSolver<float> solver(call_, channels_, histograms_, gathered_, execution_);
    std::vector<uint8_t> codes(histograms_.size());
    std::vector<float> outputs(2 * channels_.size());
    describe_bins(/*searched=*/false);
    execution_.run(call_.shape.channels, 1, [&](int64_t begin, int64_t end) {
      WorldSolver<float>::Solved solved;
      for (int64_t c = begin; c < end; ++c) {
        solver.solve(c, call_.x.dtype, solved);
        outputs[2 * c] = solved.output.scale;
        outputs[2 * c + 1] = solved.output.shift;
        if (channels_[c].how != How::binned) continue;
        std::copy_n(solved.binned.codes(), channels_[c].plan.bins, codes.data() + bins_[c].first);
      }
    });
    copy_results();
    device_.write({bins_, heavy_, intervals_of_, codes, outputs, host_.table});
  }

 private:
  Round counted() {
    switch (stage_) {
      case Stage::summary:
        return device_.summary(rank_);
      case Stage::bins:
        describe_bins(/*searched=*/false);
        return device_.bins(bins_, histograms_.size(), histograms_.packed());
      case Stage::search:
        describe_bins(/*searched=*/true);
        return device_.search(bins_, heavy_, intervals_of_, intervals_.size(), intervals_.packed());
      case Stage::gather:
        return device_.gather(gathered_.now(), values(), images_before_ * call_.shape.spatial);
      case Stage::done:
        break;
    }
    return {};
  }

  // searched: those alone whose levels are being searched.
  void describe_bins(bool searched) {
    heavy_.clear();
    intervals_of_.clear();
    for (size_t c = 0; c < channels_.size(); ++c) {
      const Channel& channel = channels_[c];
      WorldBins& bins = bins_[c];
      bins.kind = channel.how == How::binned  ? WorldBins::binned
                  : channel.how == How::exact ? WorldBins::gathered
                                              : WorldBins::not_finite;
      bins.map = channel.plan.map;
      bins.first = static_cast<int32_t>(channel.first_bin);
      bins.heavy_begin = bins.heavy_end = static_cast<int32_t>(heavy_.size());
      if (searched && !channel.search.open()) continue;
      const auto base = static_cast<int32_t>(intervals_of_.size());
      for (const auto& heavy : channel.search.heavy()) {
        heavy_.push_back({heavy.bin, base + heavy.begin, base + heavy.end, heavy.level});
      }
      for (const auto& interval : channel.search.intervals()) {
        intervals_of_.push_back({static_cast<uint32_t>(interval.begin),
                                 static_cast<uint32_t>(interval.end),
                                 static_cast<int32_t>(channel.first_interval) + interval.first,
                                 interval.shift, interval.level});
      }
      bins.heavy_end = static_cast<int32_t>(heavy_.size());
    }
  }

  void copy_results() {
    const auto copy = [&](auto* to, const auto& from) {
      if (to) device_.to_device(to, from.data(), from.size() * sizeof(from[0]));
    };
    copy(on_device_.stats, host_.stats);
    copy(on_device_.table, host_.table);
    copy(on_device_.context, host_.context);
    const int64_t own = call_.shape.context_size();
    for (size_t c = 0; c < channels_.size() && own > 0; ++c) {
      if (channels_[c].how != How::exact) continue;
      size_t end = c + 1;
      while (end < channels_.size() && channels_[end].how == How::exact) ++end;
      device_.to_device(on_device_.code + c * own, code_.data() + c * own, (end - c) * own);
      c = end;
    }
  }

  LayerForward on_device_;
  WorldDevice& device_;
  Round round_;
  std::vector<uint8_t> code_;  // of gathered channels
  std::vector<WorldBins> bins_;
  std::vector<WorldHeavyBin> heavy_;
  std::vector<WorldInterval> intervals_of_;
};

}  // namespace

std::unique_ptr<WorldForward> world_forward(const LayerForward& call, const Rank& rank,
                                            WorldDevice& device, const Execution& execution) {
  return std::make_unique<DeviceForward>(call, rank, device, execution);
}

}  // namespace qact::core
