// The row of an evaluation, as `qact eval` writes it: one typed schema for all who make, read and
// compare such rows. Kinds: scores, reliability, tsne, histogram.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "qact/results/row.h"

namespace qact::results {

// The random tone curves, which are no part of the published benchmarks and of no mean over them.
inline constexpr const char* kTone = "tone";

// The options of training that can change what is learnt, by name; a JSON object's text, so that
// two of them compare in one step.
struct Training {
  std::string json = "{}";

  auto operator<=>(const Training&) const = default;
};

// All that was chosen but the seed, the corruption and its severity: what names a curve. Seeds are
// averaged where all of this is equal.
struct Setting {
  std::string dataset, model, activation, placement, loss, mode, adapt, classifier;
  int64_t batch_size = 0;
  std::optional<double> prior;          // images that the kept context is worth; mode prior alone
  std::optional<int64_t> copies;        // of an image; mode augment alone
  std::optional<double> momentum;       // mode stream alone
  std::string weights;                  // model: of the last epoch; best: by validation
  uint64_t data_seed = 0;               // of the corruptions
  std::string source;                   // of corrupted images: generated or official
  std::optional<std::string> official;  // the folder of official ones
  std::optional<std::string> frost;     // textures; in the row of generated frost alone
  int64_t limit = 0;                    // the first so many images; 0: all
  std::string clean_hash;               // of the clean images
  Training training;

  // Empty unless nothing else tells two curves apart: see evaluations().
  std::string model_hash, data_hash;

  auto operator<=>(const Setting&) const = default;
};

// One row, without its results.
struct Evaluation {
  std::string kind;
  Setting setting;
  std::string corruption;
  std::optional<int> severity;  // 0 is uncorrupted; none: of several
  uint64_t seed = 0;
  std::optional<int64_t> n;                       // values that the results are of
  std::string model_hash, data_hash;              // of the file of weights; of the images
  int64_t epoch = 0;                              // of the weights
  std::optional<std::string> which, layer, what;  // what else a cell has several rows of
  std::optional<int64_t> channel;
  std::optional<std::vector<int>> severities;

  size_t row = 0;  // its place among the rows it was read from
};

enum class Role {
  identity,  // tells rows apart, in one file and among files
  part,      // so does this, in rows that have it
  follows,   // from the others
};

// Call visit(name, field, role) for each field, in the order of the file.
template <class Fields, class Visit>
void visit_setting(Fields& s, const Visit& visit) {
  visit("dataset", s.dataset, Role::identity);
  visit("model", s.model, Role::identity);
  visit("activation", s.activation, Role::identity);
  visit("placement", s.placement, Role::identity);
  visit("loss", s.loss, Role::identity);
  visit("mode", s.mode, Role::identity);
  visit("adapt", s.adapt, Role::identity);
  visit("classifier", s.classifier, Role::identity);
  visit("batch_size", s.batch_size, Role::identity);
  visit("prior", s.prior, Role::identity);
  visit("copies", s.copies, Role::identity);
  visit("momentum", s.momentum, Role::identity);
  visit("weights", s.weights, Role::identity);
  visit("data_seed", s.data_seed, Role::identity);
  visit("source", s.source, Role::identity);
  visit("official", s.official, Role::identity);
  visit("frost", s.frost, Role::identity);
  visit("limit", s.limit, Role::identity);
  visit("clean_hash", s.clean_hash, Role::identity);
  visit("training", s.training, Role::follows);  // from the model's hash
}
template <class Fields, class Visit>
void visit_fields(Fields& e, const Visit& visit) {
  visit("kind", e.kind, Role::identity);
  visit("corruption", e.corruption, Role::identity);
  visit("severity", e.severity, Role::identity);
  visit("seed", e.seed, Role::identity);
  visit("n", e.n, Role::follows);
  visit("model_hash", e.model_hash, Role::identity);
  visit("epoch", e.epoch, Role::follows);
  visit("data_hash", e.data_hash, Role::identity);
  visit_setting(e.setting, visit);
  visit("which", e.which, Role::part);
  visit("layer", e.layer, Role::part);
  visit("what", e.what, Role::part);
  visit("channel", e.channel, Role::part);
  visit("severities", e.severities, Role::part);
}

Row to_row(const Evaluation& evaluation);

// Throws where a field is missing or does not fit, naming it.
Evaluation evaluation_of(const Row& row);
bool is_evaluation(const Row& row);
// Throws where a row of an evaluation is not whole, as those of earlier versions are, naming the
// file.
void check_evaluations(const Rows& rows, const std::string& file);

// What tells a row from all others of a file: every field that says what was evaluated, and how.
std::string identity(const Row& row);

// All rows of evaluations, with settings that tell apart whatever differs:
// - rows of generated frost have textures; rows of other corruptions belong to each of these;
// - the folder of official images counts only where images differ, since folders move;
// - where images differ and nothing else does, so does setting.data_hash;
// - where one seed has two models and nothing else tells why, so does setting.model_hash.
std::vector<Evaluation> evaluations(const Rows& rows);

// kind: scores. One setting and seed under one corruption; severity 0 is uncorrupted.
struct Score {
  Setting setting;
  std::string corruption;
  int severity = 0;
  uint64_t seed = 0;
  int64_t n = 0;
  std::map<std::string, double> values;  // by the row's keys; what is null is not in it

  // NaN where the row has none.
  double value(const std::string& metric) const;
};

// In the order of the rows. The same score given twice counts once; given with two values, it is an
// error.
std::vector<Score> scores(const Rows& rows);

}  // namespace qact::results
