// Everything that decides what a training run computes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace qact::train {

struct TrainConfig {
  std::string data = "mnist-small";
  std::string data_dir;
  int64_t image_size = 0;
  double validation = 0.2;
  uint64_t split_seed = 42;

  std::string model = "lenet";
  std::string activation = "qact";
  std::string placement = "auto";
  int64_t early_stages = 1;
  double image_share = 0.5;
  std::string sites;
  std::string norm = "batch";

  std::string loss = "cross-entropy";
  double margin = 1.0;
  int64_t watershed_seeds = 1;
  int64_t classes_per_batch = 10;

  int64_t epochs = 20;
  int64_t batch_size = 128;
  int64_t accumulate = 1;
  std::string augment = "none";
  double jsd = 0;
  std::string dither = "auto";
  std::string opt = "sgd";
  double lr = 0.1;
  double momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 5e-4;

  std::string lr_scheduler = "onecycle";
  std::vector<int64_t> lr_steps;
  double lr_gamma = 0.1;
  int64_t patience = 50;
  int64_t cooldown = 10;
  double threshold = 0.01;
  double min_lr = 1e-6;
  double early_stopping = 0;
  int64_t early_stopping_patience = 100;

  std::string validation_mode = "tracked";
  std::string recalibrate = "on";
  std::string fit_classifiers = "auto";
  uint64_t seed = 0;
  std::string context_scope = "auto";
  std::string device = "cpu";
  std::string amp = "none";
  bool channels_last = false;
  bool checkpoint_activations = false;
  std::string cuda_graph = "auto";
  int64_t threads = 0;
  int64_t workers = 2;
  int64_t save_every = 0;
};

// Calls visit(name, field, what it means) for each: the flags, the TOML files and config.json
// have these names.
template <class Config, class Visit>
void visit_fields(Config& c, Visit visit) {
  visit("data", c.data,
        "Name of a dataset, or path of a custom one, with a /: train/CLASS/*.png and "
        "test/CLASS/*.png");
  visit("data-dir", c.data_dir, "Folder of the datasets; default: $QACT_DATA, else ~/.cache/qact");
  visit("image-size", c.image_size,
        "Resize and crop the image files of a custom dataset to this; 0: leave them");
  visit("validation", c.validation, "Share of the training images held out for validation");
  visit("split-seed", c.split_seed, "Draws the held-out images");
  visit("model", c.model, "lenet, mlp, resnet18, resnet26, vgg16, densenet or wrn-40-4");
  visit("activation", c.activation, "qact, relu, prelu, selu, bn-relu or ibn-relu");
  visit("placement", c.placement,
        "Where the activation goes: reference, early, split, all, or auto (split for qact and "
        "ibn-relu in networks with convolutions, else reference)");
  visit("early-stages", c.early_stages, "Stages of the placements early and split, after the stem");
  visit("image-share", c.image_share,
        "Share of QAct's channels in the placement split that are ranked in their image, not in "
        "the batch");
  visit("sites", c.sites,
        "Activations of single sites, over those of the placement: stem=split,1.branch=qact,"
        "2=ibn-relu");
  visit("norm", c.norm, "Norm layers: batch or group");
  visit("loss", c.loss, "cross-entropy, triplet, triplet-hard or watershed");
  visit("margin", c.margin, "Margin of the triplet losses");
  visit("watershed-seeds", c.watershed_seeds, "Seeds per class of the watershed loss");
  visit("classes-per-batch", c.classes_per_batch,
        "Classes in each batch of the triplet and watershed losses, equally many samples of each");
  visit("epochs", c.epochs, "Passes over the training images");
  visit("batch-size", c.batch_size, "Images in a context; a smaller last batch is left out");
  visit("accumulate", c.accumulate,
        "Batches whose gradients are added up for one step; each is a context of its own");
  visit("augment", c.augment, "none, crop (pad by 4), crop-flip or augmix (after crop and flip)");
  visit("jsd", c.jsd,
        "Weight of AugMix's consistency loss, the Jensen-Shannon divergence between an image and "
        "two AugMix views of it, each a context of its own: 12, as published; 0: none");
  visit(
      "dither", c.dither,
      "Add noise of one grey level, what 8 bits leave out, to every image, in training and later, "
      "so that pixels do not tie: on, off or auto (where a quarter of all values are the same)");
  visit("opt", c.opt, "Optimiser: sgd or adam");
  visit("lr", c.lr, "Learning rate; the highest one of a scheduler");
  visit("momentum", c.momentum, "Momentum of sgd");
  visit("nesterov", c.nesterov, "Nesterov momentum for sgd");
  visit("weight-decay", c.weight_decay, "Weight decay, as an L2 penalty");
  visit("lr-scheduler", c.lr_scheduler, "onecycle, cosine, step, plateau or constant");
  visit("lr-steps", c.lr_steps, "Epochs after which step multiplies the rate by --lr-gamma: 30,60");
  visit("lr-gamma", c.lr_gamma, "Factor of step and plateau");
  visit("patience", c.patience, "Epochs without improvement before plateau lowers the rate");
  visit("cooldown", c.cooldown, "Epochs that plateau waits after it lowered the rate");
  visit("threshold", c.threshold,
        "Rise of the validation accuracy, absolute, that plateau counts as improvement");
  visit("min-lr", c.min_lr, "Lowest rate of plateau");
  visit("early-stopping", c.early_stopping,
        "Stop when the validation accuracy no longer rises by this much; 0: never");
  visit("early-stopping-patience", c.early_stopping_patience,
        "Epochs without such a rise before training stops");
  visit("validation-mode", c.validation_mode,
        "Statistics and contexts of validation: tracked (running ones) or batch (each batch's)");
  visit("recalibrate", c.recalibrate,
        "At the end, take running statistics and contexts anew from the training images: on or "
        "off");
  visit("fit-classifiers", c.fit_classifiers,
        "Fit a quantile classifier and logistic regression to the embeddings at the end: on, off, "
        "or auto (up to 2^27 values)");
  visit("seed", c.seed, "Draws weights, the order of images, augmentations and what losses draw");
  visit("context-scope", c.context_scope,
        "With several ranks, which values are ranked and normalised together: world (the batch of "
        "all ranks), batch (the share of each rank) or auto (world)");
  visit("device", c.device, "cpu, cuda (under torchrun: the GPU of the local rank) or cuda:N");
  visit("amp", c.amp, "bf16: convolutions and matrix products in bfloat16; none: all in float32");
  visit("channels-last", c.channels_last, "Channels-last memory format, which GPUs prefer");
  visit("checkpoint-activations", c.checkpoint_activations,
        "Compute blocks again in the backward pass: less memory for the same gradients");
  visit("cuda-graph", c.cuda_graph,
        "auto: on a GPU, capture the network's passes as CUDA graphs and replay them, but not "
        "with --accumulate, --jsd or --checkpoint-activations, nor with contexts of several "
        "ranks; off: never");
  visit("threads", c.threads,
        "Threads of torch; results repeat for the same number; 0: as torch chooses");
  visit("workers", c.workers, "Threads that prefetch batches");
  visit("save-every", c.save_every, "Also save every this many steps; 0: after each epoch");
}

// Throws std::invalid_argument, naming the option.
void check(const TrainConfig& config);

// With the placement that `auto` stands for.
TrainConfig resolved(TrainConfig config);

nlohmann::ordered_json to_json(const TrainConfig& config);
// `source` is where it is from, for the message. All fields, and no others.
TrainConfig train_config(const nlohmann::ordered_json& json, const std::string& source);

void write_config(const std::filesystem::path& path, const TrainConfig& config);
TrainConfig read_config(const std::filesystem::path& path);

// `saved`, with the fields called `given` from `config`.
TrainConfig overlay(const TrainConfig& saved, const TrainConfig& config,
                    const std::set<std::string>& given);

// The fields that a run is resumed with as it began: all but where data is, the workers, how often
// to save and whether CUDA graphs are captured.
nlohmann::ordered_json run_identity(const TrainConfig& config);
// Throws where `config` would not go on computing what the run with this identity computes.
void check_same_run(const nlohmann::ordered_json& identity, const TrainConfig& config);

}  // namespace qact::train
