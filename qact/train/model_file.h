// A trained network in a file: its weights under their usual names, those of the classifiers on its
// embeddings, and a model card in the metadata, which says how to build it and normalise its input.
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
  bool dither = false;                   // see data::add_dither()
  std::string data;                      // the dataset's name
  std::string data_hash;                 // data::digest_of the training images
  std::string loss;                      // that it was trained with
  std::vector<std::string> class_names;  // empty: none
  int64_t epoch = 0;                     // how many it was trained for
  bool recalibrated = false;             // see recalibrate.h

  template <class Self, class Visit>
  static void visit_fields(Self& c, Visit visit) {
    visit("model", c.model);
    visit("activation", c.options.activation);
    visit("placement", c.options.placement);
    visit("early_stages", c.options.early_stages);
    visit("image_share", c.options.image_share);
    visit("sites", c.options.sites);
    visit("norm", c.options.norm);
    visit("classes", c.options.classes);
    visit("channels", c.options.channels);
    visit("image_size", c.options.image_size);
    visit("mean", c.normalisation.mean);
    visit("std", c.normalisation.std);
    visit("dither", c.dither);
    visit("data", c.data);
    visit("data_hash", c.data_hash);
    visit("loss", c.loss);
    visit("class_names", c.class_names);
    visit("epoch", c.epoch);
    visit("recalibrated", c.recalibrated);
  }
};

void save_model(const std::filesystem::path& path, const models::Network& network,
                const ModelCard& card, const ClassifiersByContext& classifiers = {});

struct Model {
  ModelCard card;
  std::shared_ptr<models::Network> network;  // on the CPU
  ClassifiersByContext classifiers;          // on its embeddings; empty where the file has none
};
// Throws, naming the file, where it is damaged (it has a checksum), was not written by
// save_model(), or has weights that are not finite.
Model load_model(const std::filesystem::path& path);

}  // namespace qact::train
