#include "qact/eval/evaluate.h"

#include <algorithm>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "qact/base/each_once.h"
#include "qact/base/jobs.h"
#include "qact/corrupt/select.h"
#include "qact/data/digest.h"
#include "qact/dist/process.h"
#include "qact/eval/diagnostics.h"
#include "qact/eval/evaluated_run.h"
#include "qact/eval/image_stream.h"
#include "qact/eval/jobs.h"
#include "qact/eval/model_pool.h"
#include "qact/eval/row_file.h"
#include "qact/eval/row_maker.h"
#include "qact/eval/scores.h"
#include "qact/eval/shared_rows.h"
#include "qact/ops/single_thread_guard.h"
#include "qact/train/device.h"

namespace qact::eval {
namespace {

using results::Row;
using results::Rows;

// Empty where the field is missing or no text.
std::string text_of(const Row& row, const char* name) {
  const auto at = row.find(name);
  return at != row.end() && at->is_string() ? at->get<std::string>() : "";
}

TestImages open_images(const EvaluateOptions& o, const EvaluatedRun& run) {
  const train::TrainConfig& config = run.config;
  TestImagesOptions images;
  images.data = o.data.empty() ? config.data : o.data;
  images.data_dir = o.data_dir.empty() ? config.data_dir : o.data_dir;
  images.image_size = static_cast<int>(config.image_size);
  images.limit = o.limit;
  images.official = o.official;
  images.frost = o.frost;
  images.seed = o.data_seed;
  images.classes = {run.card.options.classes, run.card.class_names};
  return TestImages(images);
}

// Without what was named twice, so that nothing is computed twice.
EvaluateOptions each_once(EvaluateOptions o) {
  o.modes = base::each_once(o.modes);
  o.adapt = base::each_once(o.adapt);
  o.streams = base::each_once(o.streams);
  o.classifiers = base::each_once(o.classifiers);
  o.severities = corrupt::select_severities(o.severities);
  return o;
}

// Sets what the caller left open: the classifiers, the corruptions for images of this size, and the
// one to diagnose. Throws where a corruption is not available, before anything is written.
EvaluateOptions resolved(EvaluateOptions o, const EvaluatedRun& run, const TestImages& images) {
  check_size(run.card.options, images.size());
  o.classifiers = run.classifiers;
  o.corruptions = corrupt::select_corruptions(o.corruptions, images.size());
  if (o.diagnostic_corruption.empty()) o.diagnostic_corruption = o.corruptions.front();
  for (const int severity : o.severities) {
    for (const std::string& corruption : o.corruptions) images.check(corruption, severity);
    if (o.diagnostics) images.check(o.diagnostic_corruption, severity);
  }
  return o;
}

std::string described(const std::vector<EvaluateJob>& jobs) {
  std::string text = std::to_string(jobs.size()) + " jobs:";
  for (const EvaluateJob& job : jobs) {
    text += " " + job.stream + "/" + std::to_string(job.severity);
    for (const std::string& corruption : job.corruptions) text += "/" + corruption;
    for (const Predictor& p : job.predictors) text += "/" + p.mode + "+" + p.adapt;
  }
  return text;
}

int thread_count(int threads) {
  return threads > 0 ? threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

class Evaluator {
 public:
  Evaluator(const train::RunFolder& folder, const EvaluateOptions& options,
            const EvaluateEvents& events, LoadedRun loaded, const dist::World& world)
      : events_(events),
        world_(world),
        run_(std::move(loaded.run)),
        images_(open_images(options, run_)),
        options_(resolved(options, run_, images_)),
        maker_(run_, options_, images_),
        path_(folder.results()),
        models_(std::move(loaded.model), options.device, thread_count(options.threads)),
        name_(data::folder_name(folder.folder)) {
    if (world.is_first()) file_.emplace(path_);
  }

  EvaluateResult run() {
    expect_same_on_all_ranks();
    EvaluateResult result;
    result.remark = images_.remark();
    size_t before = 0;
    if (world_.is_first()) {
      result.stale = file_->remove_if([&](const Row& row) {
        return text_of(row, "weights") == options_.weights &&
               text_of(row, "model_hash") != run_.hash;
      });
      before = file_->rows().size();
      result.kept = requested_rows().size();
      file_->append({maker_.config(name_)});
    }
    // All ranks find the same jobs: they read before the first one writes more.
    world_.barrier();
    if (!world_.is_first()) file_.emplace(path_, RowFile::Access::read);
    std::vector<EvaluateJob> jobs = missing_jobs();
    add_diagnostics(&jobs);
    dist::expect_same(world_, "the rows to compute", described(jobs));
    try {
      run(jobs);
    } catch (const base::Interrupted&) {
      result.interrupted = true;
    }
    result.rows = requested_rows();
    result.made = file_->rows().size() - before;
    return result;
  }

 private:
  // Each rank writes rows that say what it computed, so that a difference would go unseen.
  void expect_same_on_all_ranks() const {
    if (world_.alone()) return;
    std::vector<std::pair<std::string, std::string>> named = {
        {"the program", dist::program_identity()}, {"the run", path_.parent_path().string()}};
    for (const auto& [name, value] : settings(options_)) named.emplace_back("--" + name, value);
    named.emplace_back("the digest of the weights", run_.hash);
    named.emplace_back("the digest of the images", images_.hash("none", 0));
    dist::expect_same(world_, named);
  }

  // Without diagnostics.
  std::vector<EvaluateJob> missing_jobs() const {
    std::vector<EvaluateJob> jobs = all_jobs(options_, options_.severities);
    for (EvaluateJob& job : jobs) {
      std::erase_if(job.predictors, [&](const Predictor& predictor) {
        const std::vector<Cell> cells = job.cells(predictor);
        return std::all_of(cells.begin(), cells.end(), [&](const Cell& c) { return has(c); });
      });
    }
    std::erase_if(jobs, [](const EvaluateJob& job) { return job.predictors.empty(); });
    return jobs;
  }

  bool has(const Cell& cell) const {
    const Rows rows = maker_.cell_rows(cell);
    return std::all_of(rows.begin(), rows.end(), [&](const Row& row) { return file_->has(row); });
  }

  Diagnostics diagnostics_in(const std::string& mode) const {
    return {options_, images_, maker_, options_.diagnostic_corruption, mode};
  }

  void add_diagnostics(std::vector<EvaluateJob>* jobs) const {
    if (!options_.diagnostics) return;
    for (const std::string& mode : options_.modes) {
      if (file_->has(diagnostics_in(mode).tsne_row())) continue;
      jobs->push_back({.predictors = {{mode}}, .diagnostics = true});
    }
  }

  // Copies for the mode augment are placed as the training's augmentation places images; where it
  // had none, by a crop.
  InferenceOptions inference_of(const Predictor& predictor) const {
    InferenceOptions inference = options_.inference;
    inference.mode = predictor.mode;
    inference.adapt = predictor.adapt;
    inference.seed = options_.data_seed;
    const std::string& augment = run_.config.augment;
    inference.augmentation = {.pad = 4, .flip = augment == "crop-flip" || augment == "augmix"};
    return inference;
  }

  // Reports progress in images that went through the network.
  Advance advance(const InferenceOptions& inference, base::Work& work) const {
    return [&work, each = images_per_prediction(inference)](int64_t images) {
      work.advance(images * each);
    };
  }

  // Images that go through the network.
  int64_t work_of(const EvaluateJob& job) const {
    int64_t units = 0;
    for (const Predictor& each : job.predictors) units += images_per_prediction(inference_of(each));
    const auto severities = static_cast<int64_t>(options_.severities.size());
    const auto corruptions = static_cast<int64_t>(job.corruptions.size());
    return units * (job.diagnostics ? diagnostics_in(job.predictors[0].mode).samples() * severities
                                    : images_.count() * corruptions);
  }

  // Job i is that of rank i mod the number of ranks. The rows of a job are written after each of
  // its predictors, so that little is lost when it is interrupted.
  void run(const std::vector<EvaluateJob>& jobs) {
    std::vector<int64_t> mine, first_part;  // jobs of this rank; parts before each job
    int64_t units = 0, parts = 0;
    for (size_t i = 0; i < jobs.size(); ++i) {
      first_part.push_back(parts);
      parts += static_cast<int64_t>(jobs[i].predictors.size());
      if (static_cast<int>(i % world_.size()) != world_.rank()) continue;
      mine.push_back(static_cast<int64_t>(i));
      units += work_of(jobs[i]);
    }
    OrderedRows ordered(*file_, events_.written);
    SharedRows shared(world_, path_.string(), ordered, parts);
    const ops::SingleThreadGuard single_thread;
    base::run_jobs(static_cast<int64_t>(mine.size()), thread_count(options_.threads),
                   std::max<int64_t>(units, 1), shared.collecting(events_.progress),
                   [&](int64_t i, base::Work& work) {
                     const EvaluateJob& job = jobs[mine[i]];
                     int64_t part = first_part[mine[i]];
                     const auto finish = [&](Rows rows) { shared.finish(part++, std::move(rows)); };
                     if (job.diagnostics) {
                       finish(rows_of_diagnostics(job.predictors[0], work));
                     } else {
                       evaluate(job, work, finish);
                     }
                   });
    shared.wait(events_.progress);
  }

  // Calls finish(rows) after each predictor.
  void evaluate(const EvaluateJob& job, base::Work& work, const std::function<void(Rows)>& finish) {
    const ImageStream stream =
        open_stream(images_, job.stream, job.corruptions, job.severity, options_.data_seed);
    for (const Predictor& predictor : job.predictors) {
      Rows rows;
      const InferenceOptions inference = inference_of(predictor);
      InferenceOutput output;
      {
        const ModelPool::Lease model(models_);
        output =
            infer(*model, stream.images, inference, run_.classifiers, advance(inference, work));
      }
      const std::vector<Cell> cells = job.cells(predictor);
      for (size_t i = 0; i < cells.size(); ++i) add_rows(cells[i], stream, i, output, rows);
      finish(std::move(rows));
    }
  }

  Rows rows_of_diagnostics(const Predictor& predictor, base::Work& work) {
    Diagnostics diagnostics = diagnostics_in(predictor.mode);
    const InferenceOptions inference = inference_of(predictor);
    {
      const ModelPool::Lease model(models_);
      diagnostics.run_network(*model, inference, advance(inference, work));
    }
    return diagnostics.rows();
  }

  // The rows of one part of a stream.
  void add_rows(const Cell& cell, const ImageStream& stream, size_t part,
                const InferenceOutput& output, Rows& rows) const {
    const std::vector<int64_t>& positions = stream.parts[part].positions;
    const std::vector<int64_t> labels = stream.labels_of(stream.parts[part]);
    const auto count = static_cast<int64_t>(labels.size());
    const torch::Tensor chosen = torch::tensor(positions, torch::kLong);
    const Row retrieval = retrieval_scores(
        output.embedding.index_select(0, chosen.to(output.embedding.device())), labels);
    Rows empty = maker_.cell_rows(cell);
    auto row = empty.begin();
    for (const torch::Tensor& all : output.probabilities) {
      const torch::Tensor table = all.index_select(0, chosen);
      const metrics::Predictions p{
          {table.data_ptr<float>(), static_cast<size_t>(table.numel())}, labels, table.size(1)};
      Row scores = probability_scores(p);
      scores.update(retrieval);
      rows.push_back(maker_.finish(*row++, count, scores));
      for (int which = 0; which < 2; ++which, ++row) {
        const Row bins = {{"bins", reliability_bins(p, row->at("which"))}};
        rows.push_back(maker_.finish(*row, count, bins));
      }
    }
  }

  // The rows of the file that the options ask for, from this evaluation or an earlier one.
  Rows requested_rows() const {
    std::set<std::string> wanted;
    std::vector<int> severities = options_.severities;
    severities.push_back(0);  // where there are rows of clean images, they are wanted in any case
    for (const EvaluateJob& job : all_jobs(options_, severities)) {
      for (const Predictor& predictor : job.predictors) {
        for (const Cell& cell : job.cells(predictor)) {
          for (const Row& row : maker_.cell_rows(cell)) wanted.insert(results::identity(row));
        }
      }
    }
    Rows rows;
    for (const Row& row : file_->rows()) {
      if (wanted.contains(results::identity(row))) rows.push_back(row);
    }
    return rows;
  }

  const EvaluateEvents& events_;
  const dist::World& world_;
  const EvaluatedRun run_;
  const TestImages images_;
  const EvaluateOptions options_;
  const RowMaker maker_;
  const std::filesystem::path path_;
  std::optional<RowFile> file_;
  ModelPool models_;
  const std::string name_;
};

}  // namespace

EvaluateResult evaluate(const train::RunFolder& folder, const EvaluateOptions& given,
                        const EvaluateEvents& events, const dist::World& world) {
  check(given);
  const EvaluateOptions options = each_once(given);
  train::check_device("eval", options.device);
  LoadedRun loaded = load_run(folder, options.weights, options.classifiers);
  for (const std::string& name : options.adapt) check_adaptation(loaded.model, name);
  return Evaluator(folder, options, events, std::move(loaded), world).run();
}

}  // namespace qact::eval
