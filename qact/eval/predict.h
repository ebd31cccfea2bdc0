// Predicts the classes of image files of any size with a trained network.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "qact/eval/inference.h"

namespace qact::eval {

struct ClassProbability {
  int64_t label = 0;
  std::string name;  // of the class; its number where the model has no names
  double probability = 0;
};

struct Prediction {
  std::filesystem::path image;
  std::vector<ClassProbability> top;  // the most probable first
};

struct Unreadable {
  std::filesystem::path image;
  std::string reason;
};

struct PredictOptions {
  InferenceOptions inference;
  std::string classifier;  // none: the first of classifiers_of(model)
  int64_t top = 1;         // classes for each image; at most all
  int threads = 0;         // that decode images; 0: one per core
};

struct PredictResult {
  std::vector<Prediction> predictions;  // in the order of the images
  std::vector<Unreadable> unreadable;
};

// Files as they are; of folders, all files named as PNG or JPEG images, also in folders inside, in
// the order of their names. Files and folders that cannot be read are listed too: predict() says
// why.
std::vector<std::filesystem::path> list_images(const std::vector<std::string>& inputs);

// The shorter side of each image is resized to the network's input size, and the centre is cropped.
// All images that can be read are batched in their order, which decides which share a context.
PredictResult predict(const train::Model& model, const std::vector<std::filesystem::path>& images,
                      const PredictOptions& options, const Advance& advance = {});

}  // namespace qact::eval
