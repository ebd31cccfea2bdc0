#include "qact/eval/evaluate.h"

#include <algorithm>
#include <stdexcept>
#include <thread>

#include "qact/base/fail.h"
#include "qact/base/jobs.h"
#include "qact/corrupt/corrupt.h"
#include "qact/corrupt/select.h"
#include "qact/data/digest.h"
#include "qact/eval/diagnostics.h"
#include "qact/eval/model_pool.h"
#include "qact/eval/plan.h"
#include "qact/eval/scores.h"
#include "qact/ops/single_thread_guard.h"
#include "qact/train/device.h"

namespace qact::eval {
namespace {

namespace fs = std::filesystem;
using results::Row;
using results::Rows;

struct Loaded {
  Subject subject;
  train::Model model;
};

// The model is read here and nowhere else: its copies are made in memory.
Loaded load_subject(const train::RunFolder& folder, const EvaluateOptions& options) {
  Subject subject;
  subject.config = train::read_config(folder.config());
  const fs::path path =
      train::expect_in_run(options.weights == "best" ? folder.best() : folder.model());
  const auto hash = [&] { return data::digest_of(path, "sha256").substr(0, data::kShortDigest); };
  subject.hash = hash();
  train::Model model = train::load_model(path);
  if (hash() != subject.hash) {
    base::fail("eval", "expected ", path.string(),
               " to stay as it is while it is read, got another one: is it being trained?");
  }
  subject.classifiers = options.classifiers.empty() ? classifiers_of(model) : options.classifiers;
  check_classifiers(model, subject.classifiers);
  if (subject.classifiers.empty()) {
    base::fail("eval", "expected a model with a classifier, got none in ", path.string(),
               ": the loss ", model.card.loss, " trains none, and none was fitted");
  }
  subject.card = model.card;
  return {std::move(subject), std::move(model)};
}

// Empty where the field is absent or no text.
std::string text_of(const Row& row, const char* name) {
  const auto at = row.find(name);
  return at != row.end() && at->is_string() ? at->get<std::string>() : "";
}

TestImages open_images(const EvaluateOptions& o, const Subject& subject) {
  const train::TrainConfig& config = subject.config;
  TestImagesOptions images;
  images.data = o.data.empty() ? config.data : o.data;
  images.data_dir = o.data_dir.empty() ? config.data_dir : o.data_dir;
  images.image_size = static_cast<int>(config.image_size);
  images.limit = o.limit;
  images.official = o.official;
  images.frost = o.frost;
  images.seed = o.data_seed;
  images.classes = {subject.card.options.classes, subject.card.class_names};
  return TestImages(images);
}

// What is left to the run named: its classifiers, the corruptions of its images' size, and of
// these the one to diagnose. Throws where some cannot be had, before anything is written.
EvaluateOptions resolved(EvaluateOptions o, const Subject& subject, const TestImages& images) {
  check_size(subject.card.options, images.size());
  o.classifiers = subject.classifiers;
  o.corruptions = corrupt::select_corruptions(o.corruptions, images.size());
  if (o.diagnostic_corruption.empty()) o.diagnostic_corruption = o.corruptions.front();
  for (const int severity : o.severities) {
    for (const std::string& corruption : o.corruptions) images.check(corruption, severity);
    if (o.diagnostics) images.check(o.diagnostic_corruption, severity);
  }
  return o;
}

int thread_count(int threads) {
  return threads > 0 ? threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

class Evaluation {
 public:
  Evaluation(const train::RunFolder& folder, const EvaluateOptions& options,
             const EvaluateEvents& events, Loaded loaded)
      : events_(events),
        subject_(std::move(loaded.subject)),
        images_(open_images(options, subject_)),
        options_(resolved(options, subject_, images_)),
        maker_(subject_, options_, images_),
        file_(folder.results()),
        models_(std::move(loaded.model), options.device, thread_count(options.threads)),
        name_(data::folder_name(folder.folder)) {}

  EvaluateResult run() {
    EvaluateResult result;
    result.remark = images_.remark();
    result.stale = file_.remove_if([&](const Row& row) {
      return text_of(row, "weights") == options_.weights &&
             text_of(row, "model_hash") != subject_.hash;
    });
    const size_t before = file_.rows().size();
    result.kept = asked_for().size();
    file_.append({maker_.config(name_)});
    std::vector<EvaluateJob> jobs = plan(options_, maker_, file_);
    add_diagnostics(&jobs);
    try {
      run(jobs);
    } catch (const base::Interrupted&) {
      result.interrupted = true;
    }
    result.rows = asked_for();
    result.made = file_.rows().size() - before;
    return result;
  }

 private:
  Diagnostics diagnostics_in(const std::string& mode) const {
    return {options_, images_, maker_, options_.diagnostic_corruption, mode};
  }

  void add_diagnostics(std::vector<EvaluateJob>* jobs) const {
    if (!options_.diagnostics) return;
    for (const std::string& mode : options_.modes) {
      if (file_.has(diagnostics_in(mode).tsne_row())) continue;
      jobs->push_back({.modes = {mode}, .diagnostics = true});
    }
  }

  // Images that pass through the network.
  int64_t work_of(const EvaluateJob& job) const {
    int64_t units = 0;
    for (const std::string& mode : job.modes) units += passes(mode, options_);
    const auto severities = static_cast<int64_t>(options_.severities.size());
    return units * (job.diagnostics ? diagnostics_in(job.modes[0]).samples() * severities
                                    : images_.count());
  }

  void run(const std::vector<EvaluateJob>& jobs) {
    int64_t units = 0;
    for (const EvaluateJob& job : jobs) units += work_of(job);
    OrderedRows ordered(file_, events_.written);
    const ops::SingleThreadGuard single_thread;
    base::run_jobs(static_cast<int64_t>(jobs.size()), thread_count(options_.threads),
                   std::max<int64_t>(units, 1), events_.progress, [&](int64_t i, base::Work& work) {
                     ordered.finish(i, jobs[i].diagnostics
                                           ? rows_of_diagnostics(jobs[i].modes[0], work)
                                           : rows_of(jobs[i], work));
                   });
  }

  Rows rows_of(const EvaluateJob& job, base::Work& work) {
    Rows rows;
    const data::Split split = images_.read(job.corruption, job.severity);
    for (const std::string& mode : job.modes) add_rows(job, split, mode, work, rows);
    return rows;
  }

  Rows rows_of_diagnostics(const std::string& mode, base::Work& work) {
    Diagnostics diagnostics = diagnostics_in(mode);
    const int64_t each = passes(mode, options_);
    {
      const ModelPool::Loan model(models_);
      diagnostics.pass(*model, inference_in(mode, options_, subject_.config),
                       [&](int64_t images) { work.advance(images * each); });
    }
    return diagnostics.rows();
  }

  void add_rows(const EvaluateJob& job, const data::Split& split, const std::string& mode,
                base::Work& work, Rows& rows) {
    const Inference how = inference_in(mode, options_, subject_.config);
    const int64_t each = passes(mode, options_);
    Outputs outputs;
    {
      const ModelPool::Loan model(models_);
      outputs = infer(*model, split, how, subject_.classifiers,
                      [&](int64_t images) { work.advance(images * each); });
    }
    const Row retrieval = retrieval_scores(outputs.embedding, split.labels);
    Rows empty = maker_.of_cell(mode, job.corruption, job.severity);
    auto row = empty.begin();
    for (const torch::Tensor& table : outputs.probabilities) {
      const metrics::Predictions p{{table.data_ptr<float>(), static_cast<size_t>(table.numel())},
                                   split.labels,
                                   table.size(1)};
      Row scores = probability_scores(p);
      scores.update(retrieval);
      rows.push_back(maker_.finish(*row++, split.count(), scores));
      for (int which = 0; which < 2; ++which, ++row) {
        const Row bins = {{"bins", reliability_bins(p, row->at("which"))}};
        rows.push_back(maker_.finish(*row, split.count(), bins));
      }
    }
  }

  // The rows of the file that this evaluation's options name, whoever made them.
  Rows asked_for() const {
    std::set<std::string> wanted;
    const auto want = [&](const Rows& rows) {
      for (const Row& row : rows) wanted.insert(results::identity(row));
    };
    for (const std::string& mode : options_.modes) {
      want(maker_.of_cell(mode, "none", 0));
      for (const std::string& corruption : options_.corruptions) {
        for (const int severity : options_.severities) {
          if (severity > 0) want(maker_.of_cell(mode, corruption, severity));
        }
      }
    }
    Rows rows;
    for (const Row& row : file_.rows()) {
      if (wanted.contains(results::identity(row))) rows.push_back(row);
    }
    return rows;
  }

  const EvaluateEvents& events_;
  const Subject subject_;
  const TestImages images_;
  const EvaluateOptions options_;
  const RowMaker maker_;
  RowFile file_;
  ModelPool models_;
  const std::string name_;
};

[[noreturn]] void refuse_option(const std::string& option, const std::string& expected,
                                const std::string& got) {
  throw std::invalid_argument("[eval] expected --" + option + " " + expected + ", got " + got);
}

}  // namespace

void check(const EvaluateOptions& o) {
  if (o.modes.empty()) refuse_option("modes", "of one or more", "none");
  for (const std::string& mode : o.modes) {
    Inference how = o.inference;
    how.mode = mode;
    check(how);
  }
  if (o.severities.empty()) refuse_option("severities", "of one or more", "none");
  for (const int severity : o.severities) {
    if (severity < 0 || severity > corrupt::kSeverities) {
      refuse_option("severities", "within 0 and 5", std::to_string(severity));
    }
  }
  if (o.limit < 0) refuse_option("limit", "of 0 or more images", std::to_string(o.limit));
  if (o.weights != "model" && o.weights != "best") {
    refuse_option("weights", "model or best", "'" + o.weights + "'");
  }
  train::check_device_name("eval", o.device);
  if (o.diagnostic_samples < 1) {
    refuse_option("diagnostic-samples", "of 1 or more images",
                  std::to_string(o.diagnostic_samples));
  }
  try {
    corrupt::select_corruptions(o.corruptions, {});
    if (!o.diagnostic_corruption.empty()) corrupt::find_corruption(o.diagnostic_corruption);
  } catch (const std::exception& error) {
    throw std::invalid_argument(error.what());
  }
}

EvaluateResult evaluate(const train::RunFolder& folder, const EvaluateOptions& options,
                        const EvaluateEvents& events) {
  check(options);
  train::check_device("eval", options.device);
  return Evaluation(folder, options, events, load_subject(folder, options)).run();
}

}  // namespace qact::eval
