#include "qact/eval/predict.h"

#include <torch/torch.h>

#include <algorithm>
#include <numeric>

#include "qact/base/parallel.h"
#include "qact/data/image_files.h"

namespace qact::eval {
namespace {

namespace fs = std::filesystem;

// Images that were read, or why not.
struct ReadImages {
  std::vector<image::Image> images;
  std::vector<std::string> reasons;  // empty where it was read
};

ReadImages read_all(const std::vector<fs::path>& paths, const models::NetworkOptions& made_for,
                    int threads) {
  const auto count = static_cast<int64_t>(paths.size());
  const int side = static_cast<int>(made_for.image_size);
  const data::Preprocessing fit{side, side, static_cast<int>(made_for.channels)};
  ReadImages read{std::vector<image::Image>(count), std::vector<std::string>(count)};
  base::parallel_for(count, threads, 1, [&](int64_t i) {
    try {
      read.images[i] = data::read_image(paths[i], fit);
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& error) {
      read.reasons[i] = error.what();
    }
  });
  return read;
}

std::vector<ClassProbability> top_classes(const float* probabilities, const train::ModelCard& card,
                                          int64_t top) {
  const int64_t classes = card.options.classes;
  std::vector<int64_t> order(classes);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return probabilities[a] > probabilities[b]; });
  std::vector<ClassProbability> result;
  for (int64_t k = 0; k < std::min(top, classes); ++k) {
    const int64_t label = order[k];
    const auto& names = card.class_names;
    result.push_back(
        {label, names.empty() ? std::to_string(label) : names.at(label), probabilities[label]});
  }
  return result;
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;  // reading it as an image says why
  return fs::is_directory(path, ignored);
}

// A broken link and a folder that cannot be listed are added themselves, so that reading them says
// why. Links to folders are not followed, since they may form a cycle.
void add_images(const fs::path& folder, std::vector<fs::path>* found) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const fs::path& path = it->path();
    std::error_code ignored;
    if (!is_folder(path)) {
      if (data::is_image_file(path)) found->push_back(path);
    } else if (!it->is_symlink(ignored)) {
      add_images(path, found);
    }
  }
  if (error) found->push_back(folder);
}

}  // namespace

std::vector<fs::path> list_images(const std::vector<std::string>& inputs) {
  std::vector<fs::path> paths;
  for (const std::string& input : inputs) {
    if (!is_folder(input)) {
      paths.emplace_back(input);
      continue;
    }
    std::vector<fs::path> found;
    add_images(input, &found);
    std::sort(found.begin(), found.end());
    paths.insert(paths.end(), found.begin(), found.end());
  }
  return paths;
}

PredictResult predict(const train::Model& model, const std::vector<fs::path>& images,
                      const PredictOptions& options, const Advance& advance) {
  PredictResult result;
  const std::vector<std::string> known = classifiers_of(model);
  const std::string classifier =
      options.classifier.empty() && !known.empty() ? known.front() : options.classifier;
  check_classifiers(model, {classifier});
  ReadImages read = read_all(images, model.network->options(), options.threads);
  std::vector<uint8_t> pixels;
  image::Size size;
  for (size_t i = 0; i < images.size(); ++i) {
    if (!read.reasons[i].empty()) {
      result.unreadable.push_back({images[i], read.reasons[i]});
      continue;
    }
    result.predictions.push_back({images[i], {}});
    size = read.images[i].size;
    pixels.insert(pixels.end(), read.images[i].pixels.begin(), read.images[i].pixels.end());
    read.images[i] = {};
  }
  if (result.predictions.empty()) return result;

  const auto classes = static_cast<int>(model.card.options.classes);
  const data::Split split = data::make_split(size, classes, std::move(pixels),
                                             std::vector<int64_t>(result.predictions.size(), 0));
  const InferenceOutput output = infer(model, split, options.inference, {classifier}, advance);
  const torch::Tensor& table = output.probabilities.front();
  for (size_t i = 0; i < result.predictions.size(); ++i) {
    result.predictions[i].top =
        top_classes(table.data_ptr<float>() + i * classes, model.card, options.top);
  }
  return result;
}

}  // namespace qact::eval
