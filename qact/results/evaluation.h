// The rows of `qact eval`: one typed schema for all code that writes, reads and compares them.
// Kinds: scores, reliability, tsne, histogram.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "qact/results/row.h"

namespace qact::results {

// The corruptions by tone curves, random and fixed. They are not part of the published benchmarks,
// and no mean over corruptions includes them.
inline constexpr const char* kTone = "tone";
inline constexpr const char* kGamma4 = "gamma4";
inline bool is_tone_curve(const std::string& corruption) {
  return corruption == kTone || corruption == kGamma4;
}

// The training options that can change what is learnt, as the text of a JSON object, so that two of
// them compare as strings.
struct Training {
  std::string json = "{}";

  auto operator<=>(const Training&) const = default;
};

// All choices but the seed, the corruption and the severity: one setting is one curve. Seeds are
// averaged where the whole setting is equal.
struct Setting {
  std::string dataset, model, activation, placement, loss, mode;
  std::string adapt;                   // the method of test-time adaptation, or none
  std::string stream;                  // the order of the images: single, mixed or correlated
  std::optional<std::string> mixture;  // of corruptions, as a+b+c; stream mixed only
  std::string classifier;
  int64_t batch_size = 0;
  std::optional<double> prior;     // images that the running context counts as; mode prior only
  std::optional<int64_t> copies;   // augmented copies per image; mode augment only
  std::optional<double> momentum;  // mode stream only
  std::string weights;             // model: the last epoch's; best: by validation
  uint64_t data_seed = 0;          // of the corruptions
  std::string source;              // of corrupted images: generated or official
  std::optional<std::string> official;  // their folder, where official
  std::optional<std::string> frost;     // textures; only in rows of generated frost
  int64_t limit = 0;                    // only the first images; 0: all
  std::string clean_hash;               // of the clean images
  Training training;

  // Empty unless nothing else distinguishes two curves: see disambiguate.h.
  std::string model_hash, data_hash;

  auto operator<=>(const Setting&) const = default;
};

// One row, without its results.
struct Evaluation {
  std::string kind;
  Setting setting;
  std::string corruption;
  std::optional<int> severity;  // 0: clean; none: of several
  uint64_t seed = 0;
  std::optional<int64_t> n;                       // images or values that the results are of
  std::string model_hash, data_hash;              // of the weights file; of the images
  int64_t epoch = 0;                              // of the weights
  std::optional<std::string> which, layer, what;  // where a cell has several rows
  std::optional<int64_t> channel;
  std::optional<std::vector<int>> severities;

  size_t row = 0;  // its index among the rows it was read from
};

enum class Role {
  identity,           // part of what identifies a row
  optional_identity,  // the same, in rows that have it
  derived,            // follows from the others
};

// Each calls visit(name, field, role) for every field, in the order of the file.
template <class Fields, class Visit>
void visit_setting(Fields& s, const Visit& visit) {
  visit("dataset", s.dataset, Role::identity);
  visit("model", s.model, Role::identity);
  visit("activation", s.activation, Role::identity);
  visit("placement", s.placement, Role::identity);
  visit("loss", s.loss, Role::identity);
  visit("mode", s.mode, Role::identity);
  visit("adapt", s.adapt, Role::identity);
  visit("stream", s.stream, Role::identity);
  visit("mixture", s.mixture, Role::identity);
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
  visit("training", s.training, Role::derived);  // from the model's hash
}
template <class Fields, class Visit>
void visit_fields(Fields& e, const Visit& visit) {
  visit("kind", e.kind, Role::identity);
  visit("corruption", e.corruption, Role::identity);
  visit("severity", e.severity, Role::identity);
  visit("seed", e.seed, Role::identity);
  visit("n", e.n, Role::derived);
  visit("model_hash", e.model_hash, Role::identity);
  visit("epoch", e.epoch, Role::derived);
  visit("data_hash", e.data_hash, Role::identity);
  visit_setting(e.setting, visit);
  visit("which", e.which, Role::optional_identity);
  visit("layer", e.layer, Role::optional_identity);
  visit("what", e.what, Role::optional_identity);
  visit("channel", e.channel, Role::optional_identity);
  visit("severities", e.severities, Role::optional_identity);
}

// The names of the fields that visit_fields() visits.
const std::set<std::string>& evaluation_keys();

Row to_row(const Setting& setting);
Row to_row(const Evaluation& evaluation);

// Throws where a field is missing or has the wrong type, and names it.
Evaluation evaluation_of(const Row& row);
bool is_evaluation(const Row& row);
// Throws where a row of an evaluation is incomplete, as those of earlier versions are, and names
// the file.
void check_evaluations(const Rows& rows, const std::string& file);

// The key of a row in a file: all fields that say what was evaluated, and how.
std::string identity(const Row& row);

}  // namespace qact::results
