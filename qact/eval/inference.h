// Inference with a trained network. The mode says whose statistics and contexts it uses:
//
//   tracked  the running ones of training; an image's result does not depend on others
//   batch    each batch's own; for a network without quantile activations, BatchNorm adaptation
//   prior    the running ones, with the weight of `prior` images, blended with the batch's
//   stream   the running ones, which first move towards each batch by `momentum`
//   augment  those of the image itself and `copies` augmented copies of it
//   dataset  those of all the images, averaged over the batches of a first pass without labels
#pragma once

#include <torch/types.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "qact/data/loader.h"
#include "qact/train/model_file.h"

namespace qact::eval {

struct InferenceOptions {
  std::string mode = "tracked";
  std::string adapt = "none";  // a method of test-time adaptation: adapt/method.h
  int64_t batch_size = 500;    // a remainder joins the last batch
  double prior = 16;
  double momentum = 0.1;
  int64_t copies = 31;
  // Of the copies.
  data::Augmentation augmentation = {.pad = 4};
  uint64_t seed = 0;
};

std::vector<std::string> inference_modes();

// Throws std::invalid_argument, naming the option.
void check(const InferenceOptions& options);

// Images that go through the network for each one that is classified.
int64_t images_per_prediction(const InferenceOptions& options);

// [first, last) of each batch: `size` images each, the last one with the remainder.
std::vector<std::pair<int64_t, int64_t>> batches_of(int64_t images, int64_t size);

struct InferenceOutput {
  torch::Tensor embedding;                   // (n, features), on the network's device
  std::vector<torch::Tensor> probabilities;  // (n, classes) on the CPU, one for each classifier
};

// The classifiers that a model has: "head", the softmax of the network's logits, where its loss
// trains them; "quantile" and "logistic" where they were fitted to its embeddings
// (train/classifiers.h).
std::vector<std::string> classifiers_of(const train::Model& model);
// Throws where it does not have all of these.
void check_classifiers(const train::Model& model, const std::vector<std::string>& names);

// Throws where the method cannot adapt the model.
void check_adaptation(const train::Model& model, const std::string& name);

// Throws where the network takes images of another size.
void check_size(const models::NetworkOptions& network, const image::Size& size);

// Called with the number of images that were classified since the last call.
using Advance = std::function<void(int64_t images)>;

// Leaves the model as it was: every call begins with the parameters, the running statistics and the
// contexts of training. The batches are one stream to the method of adaptation. The quantile
// classifier ranks in the same context mode; in dataset, among all images.
InferenceOutput infer(const train::Model& model, const data::Split& images,
                      const InferenceOptions& options, const std::vector<std::string>& classifiers,
                      const Advance& advance = {});

}  // namespace qact::eval
