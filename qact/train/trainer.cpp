#include "qact/train/trainer.h"

#include <c10/core/StreamGuard.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "qact/base/fail.h"
#include "qact/dist/process.h"
#include "qact/losses/consistency.h"
#include "qact/models/autocast.h"
#include "qact/nn/quantile_activation.h"
#include "qact/train/add_classifiers.h"
#include "qact/train/async_scalar.h"
#include "qact/train/context_scope.h"
#include "qact/train/json_fields.h"
#include "qact/train/network_options.h"
#include "qact/train/not_finite.h"
#include "qact/train/recalibrate.h"
#include "qact/train/training_state.h"
#include "qact/train/validation.h"

namespace qact::train {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::shared_ptr<models::Network> make_network(const TrainConfig& c, const TrainingData& data) {
  torch::manual_seed(c.seed);
  models::NetworkOptions options = network_options(c);
  options.classes = data.split().classes;
  options.channels = data.split().size.channels;
  options.image_size = data.split().size.height;
  const auto network = models::make(c.model, options);
  network->to(torch::Device(c.device));
  if (c.checkpoint_activations) network->checkpoint_activations();
  if (c.channels_last) network->use_channels_last();
  nn::set_context_mode(
      *network, c.validation_mode == "batch" ? nn::ContextMode::batch : nn::ContextMode::tracked);
  return network;
}

losses::Loss make_loss(const TrainConfig& c) {
  return losses::make(c.loss, {.margin = c.margin, .seeds = c.watershed_seeds});
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

int64_t epoch_of(const results::Row& row, const fs::path& file) {
  try {
    return results::field<int64_t>(row, "epoch");
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(error.what() + (" in " + file.string()));
  }
}

double rounded(double value, double unit) { return std::round(value / unit) * unit; }

}  // namespace

Trainer::Trainer(const TrainConfig& config, const RunFolder& folder, const TrainEvents& events,
                 const dist::World& world)
    : config_(config),
      folder_(folder),
      events_(events),
      world_(world),
      loss_(make_loss(config)),
      data_(config, loss_.balanced, world),
      steps_(data_.batches() / config.accumulate),
      network_(make_network(config, data_)),
      optimiser_(config, *network_),
      scheduler_(config, steps_),
      early_stopping_(config) {
  if (world.alone()) return;
  check_same_on_all_ranks();
  set_context_scope(*network_, config.context_scope, world);
  gradients_.emplace(world, network_->parameters());
}

void Trainer::check_same_on_all_ranks() const {
  dist::expect_same(world_, "the program", dist::program_identity());
  Json options = run_identity(config_);
  options["save-every"] = config_.save_every;  // to save is a step of all ranks
  options["output"] = folder_.folder.string();
  const std::vector<std::string> all = world_.gather_texts(options.dump());
  const bool same = std::equal(all.begin() + 1, all.end(), all.begin());
  for (const auto& [name, value] : options.items()) {
    if (!same) dist::expect_same(world_, "--" + name, value.dump());
  }
  dist::expect_same(world_, "the digest of " + config_.data, data_.hash());
}

void Trainer::begin() {
  if (world_.is_first()) {
    save_training_state(folder_.state(), *network_, optimiser_, saved_progress());
  }
}

void Trainer::restore() {
  const auto saved = load_training_state(folder_.state(), *network_, optimiser_,
                                         [&](const Json& progress) { check_saved(progress); });
  fields_from_json(saved, &progress_);
  scheduler_.load_state_dict(saved.at("scheduler"));
  early_stopping_.load_state_dict(saved.at("early_stopping"));
  if (world_.is_first()) restore_rows();
  const auto ranks = saved.at("ranks").get<int>();
  if (ranks != world_.size() && events_.remark) {
    events_.remark("the run goes on with " + std::to_string(world_.size()) + " ranks instead of " +
                   std::to_string(ranks) + ": sums have another order from now on");
  }
}

void Trainer::restore_rows() {
  size_t torn = 0;
  results::Rows found;
  if (fs::exists(folder_.rows())) found = results::read_rows_so_far(folder_.rows(), torn);
  // Rows are written before the state: those of epochs that it does not know are made again.
  for (results::Row& row : found) {
    if (epoch_of(row, folder_.rows()) <= progress_.epoch) rows_.push_back(std::move(row));
  }
  const auto remark = [&](const std::string& text) {
    if (events_.remark) events_.remark(text);
  };
  if (torn > 0) {
    results::write_rows(folder_.rows(), rows_);
    remark("cut off line " + std::to_string(torn) + " of " + folder_.rows().string() +
           ", which was not whole");
  }
  if (static_cast<int64_t>(rows_.size()) < progress_.epoch) {
    remark("expected the rows of " + std::to_string(progress_.epoch) + " epochs in " +
           folder_.rows().string() + ", got " + std::to_string(rows_.size()) +
           ": the run goes on without the others");
  }
}

Json Trainer::saved_progress() const {
  Json progress = fields_to_json(progress_);
  progress["scheduler"] = scheduler_.state_dict();
  progress["early_stopping"] = early_stopping_.state_dict();
  progress["config"] = run_identity(config_);
  progress["ranks"] = world_.size();
  progress["data"] = {{"hash", data_.hash()},
                      {"images", data_.split().count()},
                      {"classes", data_.split().classes}};
  return progress;
}

void Trainer::check_saved(const Json& progress) const {
  const Json now = saved_progress();
  for (const auto& [name, value] : now.items()) {
    if (!progress.contains(name)) {
      base::fail("train", folder_.state().string(), ": expected '", name, "', got none");
    }
  }
  check_same_run(progress["config"], config_);
  const auto described = [](const Json& data) {
    return data["images"].dump() + " images of " + data["classes"].dump() +
           " classes with the digest " + data["hash"].get<std::string>();
  };
  if (progress["data"] != now["data"]) {
    base::fail("train", "expected the training data that the run began with, ",
               described(progress["data"]), ", got ", described(now["data"]), " in ", config_.data);
  }
}

// The state last: it alone says how far the run is, and the other files are then at least as new. A
// run that resumes from an older state writes the same files again.
void Trainer::save() {
  check_finite_weights(*network_);
  if (world_.is_first()) {
    save_model(folder_.model(), *network_, card());
    results::write_rows(folder_.rows(), rows_);
    save_training_state(folder_.state(), *network_, optimiser_, saved_progress());
  }
  world_.barrier();  // no rank goes on before the state is durable
}

ModelCard Trainer::card() const {
  const data::DatasetInfo& dataset = data_.dataset();
  return {.model = config_.model,
          .options = network_->options(),
          .normalisation = dataset.normalisation,
          .dither = data_.dithered(),
          .data = dataset.name,
          .data_hash = data_.hash(),
          .loss = config_.loss,
          .class_names = data_.split().class_names,
          .epoch = progress_.epoch};
}

// A replayed graph overwrites the gradients instead of accumulating them, and what the passes of
// several views save.
bool Trainer::uses_cuda_graph() const {
  return config_.cuda_graph == "auto" && CudaGraph::available() &&
         torch::Device(config_.device).is_cuda() && config_.accumulate == 1 && config_.jsd == 0 &&
         !config_.checkpoint_activations && (world_.alone() || config_.context_scope == "batch");
}

TrainResult Trainer::run() {
  std::optional<c10::StreamGuard> side_stream;
  if (uses_cuda_graph()) side_stream.emplace(GraphedNetwork::side_stream(config_.device));
  first_step_ = steps_done();
  TrainResult result;
  dist::expect_same(world_, "how far the run is", fields_to_json(progress_).dump());
  world_.broadcast(network_->parameters());
  while (!progress_.finished && !result.interrupted) {
    result.interrupted = !train_epoch() || !end_epoch();
    if (result.interrupted && events_.stopping) events_.stopping();
    save();
  }
  if (progress_.finished) {
    // Networks of their own, with contexts that no other rank knows of: one rank does it.
    result.interrupted = world_.any(world_.is_first() && !finish_models());
  }
  result.stopped_early = early_stopping_.should_stop();
  result.epochs = progress_.epoch;
  result.steps = steps_done();
  if (progress_.best_epoch > 0) result.best = progress_.best;
  result.best_epoch = progress_.best_epoch;
  return result;
}

bool Trainer::finish_models() {
  const auto should_continue = [&] { return report(); };
  return recalibrate_models(folder_, config_, data_, should_continue) &&
         add_classifiers(folder_, config_, data_, should_continue);
}

bool Trainer::train_epoch() {
  network_->train();
  images_ = 0;
  epoch_start_ = std::chrono::steady_clock::now();
  if (progress_.step < steps_) data_.start(progress_.epoch, progress_.step * config_.accumulate);
  while (progress_.step < steps_) {
    const double loss = take_step();
    progress_.step += 1;
    images_ += data_.batch_size() * config_.accumulate;
    const double stops = report() ? 0 : 1;
    const std::vector<double> sums = world_.sum({loss, stops});
    progress_.loss_sum += sums[0];
    if (sums[1] > 0) return false;
    if (config_.save_every > 0 && steps_done() % config_.save_every == 0) save();
  }
  return true;
}

double Trainer::take_step() {
  if (!graphed_) optimiser_.zero_grad();
  double sum = 0;
  for (int64_t i = 0; i < config_.accumulate; ++i) {
    const Batch batch = data_.next();
    const bool warmed_up = steps_done() - first_step_ == GraphedNetwork::kWarmUpSteps;
    if (!graphed_ && uses_cuda_graph() && warmed_up) {
      graphed_.emplace(batch.images, [&](const torch::Tensor& images) { return forward(images); });
    }
    const models::NetworkOutput output =
        graphed_ ? graphed_->forward(batch.images) : forward(batch.images);
    const torch::Tensor loss = loss_of(batch, output, steps_done() * config_.accumulate + i);
    const double weight =
        static_cast<double>(batch.labels.size(0)) / static_cast<double>(batch.total);
    AsyncScalar loss_on_host(loss);
    // A replayed graph calls no hooks: then all sums start at the end.
    if (gradients_ && !graphed_ && i + 1 == config_.accumulate) gradients_->start();
    (loss * (loss_.balanced ? 1 : weight) / config_.accumulate).backward();
    if (graphed_) graphed_->backward();
    // Read while the device is busy with the backward pass, so that it never waits for the host;
    // and before the step, so that the weights are still those that gave the loss.
    const double value = loss_on_host.get();
    if (!std::isfinite(value)) fail_not_finite(batch, value);
    sum += value * weight;
  }
  if (gradients_) gradients_->finish();
  optimiser_.step(scheduler_.lr(progress_.epoch, progress_.step));
  return sum / static_cast<double>(config_.accumulate);
}

// `number`: of the batch, counted through the run.
torch::Tensor Trainer::loss_of(const Batch& batch, const models::NetworkOutput& output,
                               int64_t number) {
  base::Random random(config_.seed, base::Stream::loss, number);
  const torch::Tensor loss = loss_.value(loss_input(output, batch.labels, loss_, world_), random);
  if (config_.jsd == 0) return loss;
  std::vector<torch::Tensor> logits = {output.logits};
  // A pass for each view, so that none is ranked or normalised among the images of another.
  for (const torch::Tensor& view : batch.mixed_views) logits.push_back(forward(view).logits);
  return loss + config_.jsd * losses::jensen_shannon(logits);
}

models::NetworkOutput Trainer::forward(const torch::Tensor& images) {
  if (images.size(0) == 0 && config_.context_scope == "batch") {
    return {images.new_empty({0, network_->features()}),
            images.new_empty({0, network_->options().classes})};
  }
  const models::Autocast autocast(images.device().type(), config_.amp == "bf16");
  return network_->forward(images);
}

void Trainer::fail_not_finite(const Batch& batch, double loss) {
  // Other ranks take no part in these passes.
  set_context_scope(*network_, "batch", world_);
  const std::string where = first_not_finite(*network_, [&] {
    forward(batch.images);
    for (const torch::Tensor& view : batch.mixed_views) forward(view);
  });
  base::fail("train", "expected a finite loss, got ", loss, " at step ", steps_done() + 1,
             " (epoch ", progress_.epoch + 1, "): the first output that is not finite is that of ",
             where.empty() ? "the loss " + config_.loss : where);
}

bool Trainer::report() {
  if (!events_.step) return true;
  const auto left = static_cast<double>(config_.epochs * steps_ - first_step_);
  const auto done = static_cast<double>(steps_done() - first_step_);
  return events_.step({progress_.epoch + 1, left > 0 ? done / left : 1, images_per_second()});
}

double Trainer::images_per_second() const {
  return static_cast<double>(images_) / seconds_since(epoch_start_);
}

bool Trainer::end_epoch() {
  check_finite_weights(*network_);
  TrainProgress& p = progress_;
  const double speed = images_per_second();
  results::Row row = {{"kind", "epoch"},
                      {"epoch", p.epoch + 1},
                      {"step", steps_done()},
                      {"lr", scheduler_.lr(p.epoch, steps_ - 1)},
                      {"loss", p.loss_sum / static_cast<double>(steps_)}};
  bool best = false;
  if (data_.validation_images() > 0) {
    network_->eval();
    // Where each rank has contexts of its own, the first one's are the network's.
    world_.broadcast(network_->buffers());
    const std::optional<Validation> found =
        validate([&](const torch::Tensor& images) { return forward(images); }, loss_, config_,
                 data_, world_, [&] { return !world_.any(!report()); });
    if (!found) return false;
    best = found->accuracy > p.best;
    row["val_loss"] = found->loss;
    row["val_accuracy"] = found->accuracy;
    row["best"] = best;
    if (best) {
      p.best = found->accuracy;
      p.best_epoch = p.epoch + 1;
    }
    scheduler_.end_epoch(found->accuracy);
    early_stopping_.end_epoch(found->accuracy);
  }
  if (!world_.alone()) row["ranks"] = world_.size();
  row["images_per_s"] = rounded(speed, 0.1);
  row["seconds"] = rounded(seconds_since(epoch_start_), 0.01);
  p.epoch += 1;
  p.step = 0;
  p.loss_sum = 0;
  p.finished = p.epoch == config_.epochs || early_stopping_.should_stop();
  rows_.push_back(row);
  if (best && world_.is_first()) save_model(folder_.best(), *network_, card());
  if (events_.epoch) events_.epoch(row);
  return true;
}

}  // namespace qact::train
