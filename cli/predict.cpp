// qact predict: the classes of images, as CSV or JSON.
#include "qact/eval/predict.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/inference_options.h"
#include "cli/output.h"
#include "cli/progress_bar.h"
#include "cli/text.h"
#include "cli/validators.h"
#include "qact/base/fail.h"
#include "qact/train/device.h"
#include "qact/train/run_folder.h"

namespace qact::cli {
namespace {

struct PredictCommand {
  std::string model, device = "cpu";
  std::vector<std::string> images;
  std::vector<std::string> modes = {"tracked"}, classifiers;  // one mode, at most one classifier
  eval::PredictOptions options;
  bool json = false;
};

// Quoted where a reader of CSV needs it.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

void print_csv(const std::vector<eval::Prediction>& predictions, int64_t top) {
  std::string text = "file,class,label,probability";
  for (int64_t k = 2; k <= top; ++k) {
    for (const char* column : {",class_", ",label_", ",probability_"}) {
      text += column + std::to_string(k);
    }
  }
  text += '\n';
  for (const eval::Prediction& p : predictions) {
    text += csv_field(p.image.string());
    for (const eval::ClassProbability& guess : p.top) {
      char probability[32];
      std::snprintf(probability, sizeof probability, "%.6f", guess.probability);
      text += ',' + csv_field(guess.name) + ',' + std::to_string(guess.label) + ',' + probability;
    }
    text += '\n';
  }
  print(text);
}

void print_json(const std::vector<eval::Prediction>& predictions) {
  auto list = nlohmann::ordered_json::array();
  for (const eval::Prediction& p : predictions) {
    auto top = nlohmann::ordered_json::array();
    for (const eval::ClassProbability& guess : p.top) {
      top.push_back(
          {{"class", guess.name}, {"label", guess.label}, {"probability", guess.probability}});
    }
    list.push_back({{"file", p.image.string()},
                    {"class", p.top.front().name},
                    {"label", p.top.front().label},
                    {"probability", p.top.front().probability},
                    {"top", top}});
  }
  // A file's name may be any bytes.
  print(list.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

std::vector<std::filesystem::path> find_images(const std::vector<std::string>& inputs) {
  const auto images = eval::list_images(inputs);
  if (!images.empty()) return images;
  throw std::runtime_error("[predict] expected PNG or JPEG images, got none in " +
                           joined(inputs, ", "));
}

train::Model read_model(const std::string& path) {
  if (!std::filesystem::exists(path)) {
    base::fail("predict", "expected a model's file or a run's folder, got ", path,
               ", which is not there");
  }
  return train::load_model(std::filesystem::is_directory(path)
                               ? train::expect_in_run(train::RunFolder{path}.model())
                               : std::filesystem::path(path));
}

void run_predict(const PredictCommand& command) {
  train::check_device("predict", command.device);
  const auto images = find_images(command.images);
  train::Model model = read_model(command.model);
  model.network->to(torch::Device(command.device));
  model.classifiers.to(torch::Device(command.device));
  eval::PredictResult result;
  {
    ProgressBar bar("predict");
    double done = 0;
    result = eval::predict(model, images, command.options, [&](int64_t passed) {
      done += static_cast<double>(passed);
      bar.show(done / static_cast<double>(images.size()));
    });
  }
  for (const eval::Unreadable& each : result.unreadable) {
    std::fprintf(stderr, "qact: skipped: %s\n", each.reason.c_str());
  }
  const int64_t top = std::min(command.options.top, model.card.options.classes);
  command.json ? print_json(result.predictions) : print_csv(result.predictions, top);
  if (!result.unreadable.empty()) {
    throw std::runtime_error("[predict] expected images that can be read, got " +
                             std::to_string(result.unreadable.size()) + " of " +
                             std::to_string(images.size()) + " that cannot");
  }
}

std::string only(const std::string& what, const std::vector<std::string>& words) {
  if (words.size() == 1) return words.front();
  throw CLI::ValidationError("[predict] expected one " + what + ", got " + joined(words, ", "));
}

// Wrong use, told before anything is read.
void check(const PredictCommand& command) {
  check_use([&] {
    eval::check(command.options.inference);
    train::check_device_name("predict", command.device);
  });
}

}  // namespace

void setup_predict(CLI::App& app) {
  auto predict = std::make_shared<PredictCommand>();
  eval::PredictOptions& o = predict->options;
  CLI::App* command = app.add_subcommand("predict", "Classify images with a trained network");
  command->option_defaults()->always_capture_default();
  command->add_option("model", predict->model, "A model's file, or a run's folder")->required();
  command->add_option("images", predict->images, "PNG and JPEG files, or folders of them")
      ->required();
  add_inference_options(*command, Choice::one, predict->modes, predict->classifiers, o.inference);
  command->add_flag("--flip", o.inference.augmentation.flip,
                    "Mode augment: mirror half of the copies, as training with crop-flip does");
  command->add_option("--data-seed", o.inference.seed, "Draws augmented copies");
  command->add_option("--top", o.top, "Classes to print for each image")->check(at_least(1));
  command->add_option("--device", predict->device, "cpu, cuda or cuda:N");
  command->add_option("--threads", o.threads, "Images decoded at a time; 0: one per core")
      ->check(thread_count());
  command->add_flag("--json", predict->json, "Print JSON instead of CSV");
  command->callback([predict] {
    eval::PredictOptions& options = predict->options;
    options.inference.mode = only("mode", predict->modes);
    if (!predict->classifiers.empty()) {
      options.classifier = only("classifier", predict->classifiers);
    }
    check(*predict);
    run_predict(*predict);
  });
}

}  // namespace qact::cli
