// The ways of inference: whose statistics and contexts a trained network works in.
//
//   tracked  those kept from training; images do not see each other
//   batch    each batch's own; for a network without quantile activations, BatchNorm adaptation
//   prior    the kept ones, worth `prior` images, blended with the batch's
//   stream   the kept ones, which first move towards each batch by `momentum`
//   augment  those of the image itself and `copies` augmented copies of it
//   dataset  those of all the images, averaged over the batches of a first, unlabelled pass
#pragma once

#include <torch/types.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "qact/data/loader.h"
#include "qact/train/model_file.h"

namespace qact::eval {

struct Inference {
  std::string mode = "tracked";
  int64_t batch_size = 500;  // a remainder joins the last batch
  double prior = 16;
  double momentum = 0.1;
  int64_t copies = 31;
  data::Augmentation augmentation = {.pad = 4};  // of the copies
  uint64_t seed = 0;                             // of the copies
};

std::vector<std::string> inference_modes();

// Throws std::invalid_argument, naming the option.
void check(const Inference& how);

// First and past-the-last image of each batch: of `size` each, the last with the remainder.
std::vector<std::pair<int64_t, int64_t>> batches_of(int64_t images, int64_t size);

struct Outputs {
  torch::Tensor embedding;                   // (n, features), on the network's device
  std::vector<torch::Tensor> probabilities;  // (n, classes) on the CPU, one for each classifier
};

// Those that a model has: "head", the softmax of the network's logits, where its loss trains
// them; "quantile" and "logistic" where they were fitted to its embeddings (classifiers.h).
std::vector<std::string> classifiers_of(const train::Model& model);
// Throws where it has not all of these.
void check_classifiers(const train::Model& model, const std::vector<std::string>& names);

// Throws where the network was made for images of another size.
void check_size(const models::NetworkOptions& made_for, const image::Size& size);

// Told the images done.
using Advance = std::function<void(int64_t images)>;

// Leaves the model's statistics and contexts as they were: every call begins with those kept
// from training. The quantile classifier ranks in the same way; in dataset, among all images.
// `images` have the size that the network was made for.
Outputs infer(const train::Model& model, const data::Split& images, const Inference& how,
              const std::vector<std::string>& classifiers, const Advance& advance = {});

}  // namespace qact::eval
