// Every corruption, the mean over its five severities, next to the Python package imagecorruptions
// in as many processes as there are threads here. That package knows the ImageNet-C constants
// alone, so the two do the same work at 224 x 224 only.
#include "qact/corrupt/corrupt.h"

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "bench/bench.h"
#include "qact/base/random.h"

namespace qact::bench {
namespace {

constexpr const char* kPythonPeer = "imagecorruptions";

// Milliseconds per image by name; empty where the package cannot be imported. The
// environment may name another Python than python3.
nlohmann::json time_peer(int side, int images, int processes) {
  const char* python = std::getenv("QACT_BENCH_PYTHON");
  const std::string command = std::string(python ? python : "python3") + " " +
                              QACT_SOURCE_DIR "/scripts/bench_imagecorruptions.py --side " +
                              std::to_string(side) + " --images " + std::to_string(images) +
                              " --processes " + std::to_string(processes) + " 2>/dev/null";
  std::string printed;
  if (FILE* pipe = popen(command.c_str(), "r")) {
    char part[4096];
    while (const size_t n = std::fread(part, 1, sizeof part, pipe)) printed.append(part, n);
    pclose(pipe);
  }
  const auto times = nlohmann::json::parse(printed, nullptr, false);
  return times.is_object() ? times : nlohmann::json::object();
}

std::vector<uint8_t> make_images(int64_t values) {
  base::Random random(1, 0);
  std::vector<uint8_t> out(values);
  for (int64_t i = 0; i < values; ++i) {
    out[i] = static_cast<uint8_t>(i / 7 % 256 / 2 + random.bits() % 64);
  }
  return out;
}

struct ImageBatch {
  image::Size size;
  int64_t count;
  std::vector<uint8_t> in = make_images(count * size.values());
  std::vector<uint8_t> out = std::vector<uint8_t>(in.size());
};

void run(const corrupt::Corruptor& corruptor, ImageBatch& batch, int threads) {
  corruptor.apply(batch.in.data(), 0, batch.count, batch.out.data(), threads);
}

// The batch must not depend on the number of threads; then it is timed.
double time_ours(std::string_view name, ImageBatch& batch, const Settings& settings) {
  double sum = 0;
  for (int severity = 1; severity <= corrupt::kSeverities; ++severity) {
    const corrupt::Corruptor corruptor(name, severity, batch.size);
    run(corruptor, batch, 1);
    const std::vector<uint8_t> alone = batch.out;
    run(corruptor, batch, settings.threads);
    if (batch.out != alone) {
      throw std::runtime_error("[bench] " + std::string(name) + " depends on the threads");
    }
    const auto step = [&] {
      return std::vector{milliseconds_of([&] { run(corruptor, batch, settings.threads); })};
    };
    sum += interleave({step}, std::min(settings.repeats, 5))[0][0];
  }
  return sum / corrupt::kSeverities;
}

}  // namespace

void corruption(const Settings& settings, Report& report) {
  double whole = 0;  // seconds for the 15 x 5 x 10,000 images of CIFAR-10-C
  for (const int side : {32, 224}) {
    ImageBatch batch{{side, side, 3}, side == 32 ? 256 : 4};
    const auto peer = time_peer(side, side == 32 ? 20 : 2, settings.threads);
    for (const corrupt::Corruption& d : corrupt::corruptions()) {
      if (!d.benchmark && !d.extra) continue;
      const double ms = time_ours(d.name, batch, settings);
      const auto count = static_cast<double>(batch.count);
      if (side == 32 && d.benchmark) whole += ms / 1000 / count * 50'000;
      Row row;
      row.what = "corruption";
      row.shape = {batch.count, side, side, 3};
      row.dtype = "uint8";
      row.layout = "NHWC";
      row.pass = d.name;
      row.qact_ms = ms;
      if (peer.contains(row.pass)) {
        row.peer = kPythonPeer;
        row.peer_ms = peer[row.pass].get<double>() * count;
      }
      char note[48];
      std::snprintf(note, sizeof note, "%.0f images/s", 1000 * count / ms);
      row.note = note;
      report.add(row);
    }
  }
  char line[80];
  std::snprintf(line, sizeof line, "all of CIFAR-10-C in memory, 750,000 images: %.1f s", whole);
  report.say(line);
}

}  // namespace qact::bench
