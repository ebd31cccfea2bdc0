#include "qact/models/site_list.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include "qact/nn/activation.h"

namespace qact::models {
namespace {

std::vector<std::string> site_names(const Sites& sites) {
  std::vector<std::string> names;
  for (int64_t stage = 0; stage <= sites.stages; ++stage) {
    names.push_back(trunk_site(stage));
    if (sites.branches && stage > 0) names.push_back(branch_site(stage));
  }
  if (sites.pooled) names.emplace_back(kPooledSite);
  return names;
}

void expect_one_of(const char* what, const std::string& name,
                   const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  std::string all;
  for (const std::string& each : known) all += (all.empty() ? "" : ", ") + each;
  TORCH_CHECK(false, "[models] expected ", what, " among ", all, ", got '", name, "'");
}

}  // namespace

std::string trunk_site(int64_t stage) { return stage == 0 ? "stem" : std::to_string(stage); }
std::string branch_site(int64_t stage) { return std::to_string(stage) + ".branch"; }

std::map<std::string, std::string> parse_site_list(const std::string& text, const Sites& sites) {
  std::map<std::string, std::string> chosen;
  std::vector<std::string> activations = nn::activation_names();
  activations.emplace_back(kSplit);
  std::istringstream list(text);
  for (std::string item; std::getline(list, item, ',');) {
    const size_t equals = item.find('=');
    TORCH_CHECK(equals != std::string::npos, "[models] expected SITE=ACTIVATION, got '", item, "'");
    const std::string site = item.substr(0, equals), activation = item.substr(equals + 1);
    expect_one_of("a site", site, site_names(sites));
    expect_one_of("an activation", activation, activations);
    TORCH_CHECK(chosen.emplace(site, activation).second, "[models] expected each site once, got '",
                site, "' twice");
  }
  return chosen;
}

}  // namespace qact::models
