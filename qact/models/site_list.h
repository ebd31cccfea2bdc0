// The sites of a network by name, and a list that chooses the activation of some of them.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace qact::models {

// What sites a network has; placement.h says what they are.
struct Sites {
  int64_t stages;  // beside the stem
  // The last stage whose sites are convolutional, so that an image has many values per channel; 0:
  // the stem alone, -1: none.
  int64_t convolutional_stages = stages;
  bool branches = false;
  bool pooled = false;
};

// At a site of a list: QAct with NetworkOptions::image_share.
inline constexpr const char* kSplit = "split";

inline constexpr const char* kPooledSite = "pooled";
std::string trunk_site(int64_t stage);   // "stem", "1", "2", ...
std::string branch_site(int64_t stage);  // "1.branch", ...

// "stem=split,1.branch=qact,2=ibn-relu": the name of an activation, or split, for each site. Sites
// that are not listed keep what the placement gives them. Throws for a site or an activation that
// there is not, and lists those that there are.
std::map<std::string, std::string> parse_site_list(const std::string& text, const Sites& sites);

}  // namespace qact::models
