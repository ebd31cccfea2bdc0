// A trained network's classes for images of any size.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "qact/eval/inference.h"

namespace qact::eval {

struct Guess {
  int64_t label = 0;
  std::string name;  // of the class; its number where the model has no names
  double probability = 0;
};

struct Prediction {
  std::filesystem::path image;
  std::vector<Guess> top;  // the most probable first
};

struct Unreadable {
  std::filesystem::path image;
  std::string reason;
};

struct PredictOptions {
  Inference inference;
  std::string classifier;  // none: the first of classifiers_of(model)
  int64_t top = 1;         // guesses for each image; at most as many as there are classes
  int threads = 0;         // that decode; 0: one per core
};

struct PredictResult {
  std::vector<Prediction> predictions;  // in the order of the images
  std::vector<Unreadable> unreadable;
};

// Files as they are; of folders, all that ends as a PNG or JPEG image, also further down, in
// the order of their names. What is to be read and cannot be is among them: predict() says why.
std::vector<std::filesystem::path> list_images(const std::vector<std::string>& inputs);

// The shorter side of each image is resized to the network's input, and the middle cropped.
// All that can be read are one stream of batches: their order decides who shares a context.
PredictResult predict(const train::Model& model, const std::vector<std::filesystem::path>& images,
                      const PredictOptions& options, const Advance& advance = {});

}  // namespace qact::eval
