// A trained network in a file: the weights under their usual names, those of the classifiers on
// its embeddings, and in the metadata all that is needed to build it again and to feed it.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "qact/data/split.h"
#include "qact/models/network.h"
#include "qact/train/classifiers.h"

namespace qact::train {

struct ModelCard {
  std::string model;  // the network's name
  models::NetworkOptions options;
  data::Moments normalisation;           // of the images it was trained on
  std::string data;                      // the dataset's name
  std::string data_hash;                 // data::digest_of the training images
  std::string loss;                      // it was trained with
  std::vector<std::string> class_names;  // empty: none
  int64_t epoch = 0;                     // epochs it was trained for
};

void save_model(const std::filesystem::path& path, const models::Network& network,
                const ModelCard& card, const FittedClassifiers& classifiers = {});

struct Model {
  ModelCard card;
  std::shared_ptr<models::Network> network;  // on the CPU
  FittedClassifiers classifiers;             // on its embeddings; empty where the file has none
};
// Throws, naming the file, where it is damaged, no model of ours, or has weights that are no
// finite numbers.
Model load_model(const std::filesystem::path& path);

}  // namespace qact::train
