#include "qact/train/config.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include "qact/base/atomic_file.h"
#include "qact/losses/loss.h"
#include "qact/models/network.h"
#include "qact/nn/activation.h"
#include "qact/train/device.h"
#include "qact/train/run_folder.h"

namespace qact::train {
namespace {

using Json = nlohmann::ordered_json;

[[noreturn]] void refuse(const std::string& name, const std::string& expected,
                         const std::string& got) {
  throw std::invalid_argument("[train] expected --" + name + " " + expected + ", got " + got);
}

void one_of(const std::string& name, const std::string& value,
            const std::vector<std::string>& known) {
  std::string all;
  for (const std::string& each : known) {
    if (value == each) return;
    all += (all.empty() ? "" : ", ") + each;
  }
  refuse(name, "one of " + all, "'" + value + "'");
}

// JSON knows neither NaN nor infinity.
std::string number_text(double value) {
  return std::isfinite(value) ? Json(value).dump() : std::to_string(value);
}

template <class Number>
void within(const std::string& name, Number value, Number low, Number high) {
  if (value >= low && value <= high) return;
  const Json range = {low, high};
  refuse(name, "within " + range.dump(),
         std::is_integral_v<Number> ? std::to_string(value) : number_text(value));
}

void check_numbers(const TrainConfig& c) {
  constexpr int64_t kMost = int64_t{1} << 40;
  within<int64_t>("image-size", c.image_size, 0, 1 << 16);
  within("validation", c.validation, 0.0, 0.9);
  within<int64_t>("early-stages", c.early_stages, 0, kMost);
  within("image-share", c.image_share, 0.0, 1.0);
  within("margin", c.margin, 0.0, 1e6);
  within<int64_t>("watershed-seeds", c.watershed_seeds, 1, kMost);
  within<int64_t>("classes-per-batch", c.classes_per_batch, 2, kMost);
  within<int64_t>("epochs", c.epochs, 1, kMost);
  within<int64_t>("batch-size", c.batch_size, 2, kMost);
  within<int64_t>("accumulate", c.accumulate, 1, kMost);
  within("jsd", c.jsd, 0.0, 1e6);
  within("lr", c.lr, 0.0, 1e6);
  within("momentum", c.momentum, 0.0, 1.0);
  within("weight-decay", c.weight_decay, 0.0, 1e6);
  within("lr-gamma", c.lr_gamma, 0.0, 1.0);
  within<int64_t>("patience", c.patience, 0, kMost);
  within<int64_t>("cooldown", c.cooldown, 0, kMost);
  within("threshold", c.threshold, 0.0, 1.0);
  within("min-lr", c.min_lr, 0.0, 1e6);
  within("early-stopping", c.early_stopping, 0.0, 1.0);
  within<int64_t>("early-stopping-patience", c.early_stopping_patience, 0, kMost);
  within<int64_t>("threads", c.threads, 0, 4096);
  within<int64_t>("workers", c.workers, 0, 4096);
  within<int64_t>("save-every", c.save_every, 0, kMost);
}

// What a field's value has to be, and whether it is: conversions would truncate and wrap around.
const char* expected_type(const std::string&) { return "a text"; }
const char* expected_type(bool) { return "true or false"; }
const char* expected_type(double) { return "a number"; }
const char* expected_type(int64_t) { return "a whole number"; }
const char* expected_type(uint64_t) { return "a whole number of 0 or more"; }
const char* expected_type(const std::vector<int64_t>&) { return "a list of whole numbers"; }

bool fits(const Json& value, const std::string&) { return value.is_string(); }
bool fits(const Json& value, bool) { return value.is_boolean(); }
bool fits(const Json& value, double) { return value.is_number(); }
bool fits(const Json& value, int64_t) {
  return value.is_number_integer() &&
         (!value.is_number_unsigned() || value.get<uint64_t>() <= uint64_t{1} << 62);
}
bool fits(const Json& value, uint64_t) { return value.is_number_unsigned(); }
bool fits(const Json& value, const std::vector<int64_t>&) {
  return value.is_array() && std::all_of(value.begin(), value.end(),
                                         [](const Json& each) { return fits(each, int64_t{0}); });
}

// What a run may be resumed with otherwise.
bool may_differ(const std::string& name) {
  return name == "data-dir" || name == "workers" || name == "save-every" || name == "cuda-graph";
}

}  // namespace

void check(const TrainConfig& c) {
  check_numbers(c);
  one_of("model", c.model, models::names());
  one_of("activation", c.activation, nn::activation_names());
  one_of("placement", c.placement, {"auto", "reference", "early", "split", "all"});
  one_of("norm", c.norm, {"batch", "group"});
  one_of("loss", c.loss, losses::names());
  one_of("augment", c.augment, {"none", "crop", "crop-flip", "augmix"});
  one_of("dither", c.dither, {"auto", "on", "off"});
  one_of("opt", c.opt, {"sgd", "adam"});
  one_of("lr-scheduler", c.lr_scheduler, {"onecycle", "cosine", "step", "plateau", "constant"});
  one_of("amp", c.amp, {"none", "bf16"});
  one_of("cuda-graph", c.cuda_graph, {"auto", "off"});
  one_of("context-scope", c.context_scope, {"auto", "world", "batch"});
  one_of("validation-mode", c.validation_mode, {"tracked", "batch"});
  one_of("recalibrate", c.recalibrate, {"on", "off"});
  one_of("fit-classifiers", c.fit_classifiers, {"auto", "on", "off"});
  check_device_name("train", c.device);
  if (c.nesterov && c.momentum == 0) refuse("momentum", "above 0 with --nesterov", "0");
  if (!std::is_sorted(c.lr_steps.begin(), c.lr_steps.end())) {
    refuse("lr-steps", "in ascending order", Json(c.lr_steps).dump());
  }
  if (!c.lr_steps.empty() && c.lr_steps.front() < 1) {
    refuse("lr-steps", "of 1 or more", Json(c.lr_steps).dump());
  }
  if (c.lr_scheduler == "step" && c.lr_steps.empty()) {
    refuse("lr-steps", "of one epoch or more with --lr-scheduler step", "none");
  }
  if (c.jsd > 0 && c.augment != "augmix") {
    refuse("augment", "augmix with --jsd", "'" + c.augment + "'");
  }
  if (c.jsd > 0 && c.loss != "cross-entropy") {
    refuse("loss", "cross-entropy with --jsd, which compares probabilities", "'" + c.loss + "'");
  }
  const bool watches = c.lr_scheduler == "plateau" || c.early_stopping > 0;
  if (watches && c.validation == 0) {
    refuse("validation", "above 0 with the scheduler plateau or --early-stopping", "0");
  }
}

TrainConfig resolved(TrainConfig config) {
  if (config.placement == "auto") {
    config.placement = models::default_placement(config.model, config.activation);
  }
  return config;
}

Json to_json(const TrainConfig& config) {
  Json json;
  visit_fields(config,
               [&](const char* name, const auto& field, const char*) { json[name] = field; });
  return json;
}

TrainConfig train_config(const Json& json, const std::string& source) {
  TrainConfig config;
  const auto refuse_field = [&](const std::string& expected, const std::string& got) {
    throw std::runtime_error("[train] " + source + ": expected " + expected + ", got " + got);
  };
  std::set<std::string> known;
  visit_fields(config, [&](const char* name, auto& field, const char*) {
    const std::string quoted = "'" + std::string(name) + "'";
    if (!json.contains(name)) refuse_field(quoted, "none");
    if (!fits(json[name], field)) {
      refuse_field(std::string(expected_type(field)) + " for " + quoted, json[name].dump());
    }
    json[name].get_to(field);
    known.insert(name);
  });
  for (const auto& [name, value] : json.items()) {
    if (!known.contains(name)) refuse_field("the options of a run alone", "'" + name + "'");
  }
  return config;
}

void write_config(const std::filesystem::path& path, const TrainConfig& config) {
  base::write_atomically(path, to_json(config).dump(2) + "\n");
}

TrainConfig read_config(const std::filesystem::path& path) {
  expect_in_run(path);
  const auto refuse_file = [&](const std::string& why) {
    refuse_run(path.parent_path(), "whose " + path.filename().string() + " " + why);
  };
  errno = 0;
  std::ifstream file(path);
  if (!file) refuse_file("cannot be read: " + std::generic_category().message(errno));
  Json json;
  try {
    json = Json::parse(file);
  } catch (const Json::parse_error& error) {
    const std::string text = error.what();  // "[its class] where: why"
    refuse_file("is not JSON: " + text.substr(text.find("] ") + 2));
  }
  if (!json.is_object()) refuse_file(std::string("is not an object but ") + json.type_name());
  return train_config(json, path.string());
}

TrainConfig overlay(const TrainConfig& saved, const TrainConfig& config,
                    const std::set<std::string>& given) {
  Json merged = to_json(saved);
  const Json newer = to_json(config);
  for (const std::string& name : given) merged[name] = newer[name];
  return train_config(merged, "the command line");
}

Json run_identity(const TrainConfig& config) {
  Json json;
  visit_fields(config, [&](const char* name, const auto& field, const char*) {
    if (!may_differ(name)) json[name] = field;
  });
  return json;
}

void check_same_run(const Json& before, const TrainConfig& config) {
  const Json now = run_identity(config);
  for (const auto& [name, value] : now.items()) {
    if (before.contains(name) && before[name] == value) continue;
    // What auto stands for depends on the ranks; a run that is resumed keeps its scope.
    if (name == "context-scope" && (value == "auto" || before.value(name, "") == "auto")) continue;
    refuse(name, "as the run began, " + (before.contains(name) ? before[name].dump() : "none"),
           value.dump());
  }
}

}  // namespace qact::train
