#include "qact/eval/evaluate_options.h"

#include <algorithm>
#include <stdexcept>

#include "qact/adapt/method.h"
#include "qact/base/joined.h"
#include "qact/corrupt/corrupt.h"
#include "qact/corrupt/select.h"
#include "qact/eval/image_stream.h"
#include "qact/train/device.h"

namespace qact::eval {
namespace {

[[noreturn]] void refuse_option(const std::string& option, const std::string& expected,
                                const std::string& got) {
  throw std::invalid_argument("[eval] expected --" + option + " " + expected + ", got " + got);
}

void check_method(const EvaluateOptions& o, const std::string& name) {
  const adapt::MethodInfo& method = adapt::find_method(name);
  if (std::any_of(o.modes.begin(), o.modes.end(), [&](auto& m) { return method.works_in(m); })) {
    return;
  }
  refuse_option("modes", "with " + base::joined(method.modes, ", ") + " for --adapt " + name,
                base::joined(o.modes, ", "));
}

std::string plain(double number) { return results::Row(number).dump(); }

}  // namespace

std::vector<std::pair<std::string, std::string>> settings(const EvaluateOptions& o) {
  using base::joined;
  return {{"modes", joined(o.modes, ",")},
          {"adapt", joined(o.adapt, ",")},
          {"stream", joined(o.streams, ",")},
          {"classifiers", joined(o.classifiers, ",")},
          {"corruptions", joined(o.corruptions, ",")},
          {"severities", joined(o.severities, ",")},
          {"batch-size", std::to_string(o.inference.batch_size)},
          {"prior", plain(o.inference.prior)},
          {"momentum", plain(o.inference.momentum)},
          {"copies", std::to_string(o.inference.copies)},
          {"data", o.data},
          {"data-dir", o.data_dir},
          {"official", o.official},
          {"frost", o.frost},
          {"data-seed", std::to_string(o.data_seed)},
          {"limit", std::to_string(o.limit)},
          {"diagnostics", o.diagnostics ? "on" : ""},
          {"diagnostic-corruption", o.diagnostics ? o.diagnostic_corruption : ""},
          {"diagnostic-samples", o.diagnostics ? std::to_string(o.diagnostic_samples) : ""},
          {"weights", o.weights},
          {"device", o.device}};
}

void check(const EvaluateOptions& o) {
  if (o.modes.empty()) refuse_option("modes", "of one or more", "none");
  for (const std::string& mode : o.modes) {
    InferenceOptions inference = o.inference;
    inference.mode = mode;
    inference.adapt = "none";
    check(inference);
  }
  if (o.adapt.empty()) refuse_option("adapt", "of one or more", "none");
  for (const std::string& name : o.adapt) check_method(o, name);
  if (o.streams.empty()) refuse_option("stream", "of one or more", "none");
  const std::vector<std::string> streams = stream_names();
  for (const std::string& name : o.streams) {
    if (std::find(streams.begin(), streams.end(), name) != streams.end()) continue;
    refuse_option("stream", "of " + base::joined(streams, ", "), "'" + name + "'");
  }
  if (o.severities.empty()) refuse_option("severities", "of one or more", "none");
  for (const int severity : o.severities) {
    if (severity < 0 || severity > corrupt::kSeverities) {
      refuse_option("severities", "within 0 and 5", std::to_string(severity));
    }
  }
  if (o.limit < 0) refuse_option("limit", "of 0 or more images", std::to_string(o.limit));
  if (o.weights != "model" && o.weights != "best") {
    refuse_option("weights", "model or best", "'" + o.weights + "'");
  }
  train::check_device_name("eval", o.device);
  if (o.diagnostic_samples < 1) {
    refuse_option("diagnostic-samples", "of 1 or more images",
                  std::to_string(o.diagnostic_samples));
  }
  if (!o.diagnostic_corruption.empty() && !o.diagnostics) {
    refuse_option("diagnostics", "with --diagnostic-corruption", "none");
  }
  try {
    corrupt::select_corruptions(o.corruptions, {});
    if (!o.diagnostic_corruption.empty()) corrupt::find_corruption(o.diagnostic_corruption);
  } catch (const std::exception& error) {
    throw std::invalid_argument(error.what());
  }
}

}  // namespace qact::eval
