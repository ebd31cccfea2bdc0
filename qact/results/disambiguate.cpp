#include "qact/results/disambiguate.h"

#include <map>
#include <set>
#include <tuple>

namespace qact::results {
namespace {

using Evaluations = std::vector<Evaluation>;

Setting without_frost(Setting s) {
  s.frost.reset();
  return s;
}

// Rows without frost, once for each of the textures that rows of frost have.
Evaluations repeat_for_textures(const Evaluations& all) {
  std::map<Setting, std::set<std::string>> textures;  // of settings without them
  for (const Evaluation& e : all) {
    if (e.setting.frost) textures[without_frost(e.setting)].insert(*e.setting.frost);
  }
  Evaluations out;
  for (const Evaluation& e : all) {
    const auto found = e.setting.frost ? textures.end() : textures.find(e.setting);
    if (found == textures.end()) {
      out.push_back(e);
      continue;
    }
    for (const std::string& frost : found->second) {
      out.push_back(e);
      out.back().setting.frost = frost;
    }
  }
  return out;
}

// What should determine the corrupted images, apart from the folder of official ones.
auto image_source_of(const Evaluation& e) {
  const Setting& s = e.setting;
  return std::tuple(s.dataset, s.clean_hash, s.source, s.data_seed);
}
// One corruption at one severity of such images, and what it is mixed with.
auto cell_of(const Evaluation& e) {
  const Setting& s = e.setting;
  return std::tuple(image_source_of(e), s.official, s.frost, s.stream, s.mixture, e.corruption,
                    e.severity);
}

// The keys that have two different values among the rows that count.
template <class Key, class Value, class Counts>
auto ambiguous(const Evaluations& all, const Key& key, const Value& value, const Counts& counts) {
  using K = decltype(key(all.front()));
  std::map<K, std::string> first;
  std::set<K> found;
  for (const Evaluation& e : all) {
    if (!counts(e)) continue;
    const auto [at, fresh] = first.emplace(key(e), value(e));
    if (!fresh && at->second != value(e)) found.insert(at->first);
  }
  return found;
}

bool is_corrupted(const Evaluation& e) { return e.severity.value_or(0) > 0; }
bool any(const Evaluation&) { return true; }
std::string data_of(const Evaluation& e) { return e.data_hash; }
std::string model_of(const Evaluation& e) { return e.model_hash; }

// Keeps setting.official only where two folders have different images.
void set_folders(Evaluations& all) {
  const auto cell = [](Evaluation e) {
    e.setting.official.reset();
    return cell_of(e);
  };
  std::set<decltype(image_source_of(all.front()))> differ;
  for (const auto& found : ambiguous(all, cell, data_of, is_corrupted)) {
    differ.insert(std::get<0>(found));
  }
  for (Evaluation& e : all) {
    if (!differ.contains(image_source_of(e))) e.setting.official.reset();
  }
}

// Sets setting.data_hash. All rows of one evaluation get the same hash, that of its first cell that
// differs from another evaluation's. Where one model has two versions of a cell, it is unknown
// which of its other rows belong to which, and only the cells that differ get their hash.
void set_data_hashes(Evaluations& all) {
  const auto differ = ambiguous(all, cell_of, data_of, is_corrupted);
  const auto evaluation = [](const Evaluation& e) {
    return std::tuple(e.setting, e.seed, e.model_hash);
  };
  const auto evaluation_and_cell = [&](const Evaluation& e) {
    return std::pair(evaluation(e), cell_of(e));
  };
  using Cell = decltype(cell_of(all.front()));
  std::map<decltype(evaluation(all.front())), std::pair<Cell, std::string>> first;
  for (const Evaluation& e : all) {
    if (!differ.contains(cell_of(e))) continue;
    const std::pair<Cell, std::string> named(cell_of(e), e.data_hash);
    const auto [at, fresh] = first.emplace(evaluation(e), named);
    if (!fresh) at->second = std::min(at->second, named);
  }
  std::set<decltype(evaluation(all.front()))> twice;
  for (const auto& found : ambiguous(all, evaluation_and_cell, data_of, is_corrupted))
    twice.insert(found.first);
  for (Evaluation& e : all) {
    const auto found = first.find(evaluation(e));
    if (found == first.end()) continue;
    if (!twice.contains(found->first)) {
      e.setting.data_hash = found->second.second;
    } else if (differ.contains(cell_of(e))) {
      e.setting.data_hash = e.data_hash;
    }
  }
}

// Sets setting.model_hash where one seed of a setting has two models.
void set_model_hashes(Evaluations& all) {
  const auto seed = [](const Evaluation& e) { return std::pair(e.setting, e.seed); };
  std::set<Setting> differ;
  for (const auto& found : ambiguous(all, seed, model_of, any)) differ.insert(found.first);
  for (Evaluation& e : all) {
    if (differ.contains(e.setting)) e.setting.model_hash = e.model_hash;
  }
}

}  // namespace

std::vector<Evaluation> evaluations(const Rows& rows) {
  Evaluations all;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!is_evaluation(rows[i])) continue;
    all.push_back(evaluation_of(rows[i]));
    all.back().row = i;
  }
  if (all.empty()) return all;
  all = repeat_for_textures(all);
  set_folders(all);
  set_data_hashes(all);
  set_model_hashes(all);
  return all;
}

}  // namespace qact::results
