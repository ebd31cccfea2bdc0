#include "qact/report/section.h"

namespace qact::report {

// kind: picture, a PNG in base64 with its caption: contact sheets of the distortions.
std::vector<Block> pictures(const results::Rows& rows) {
  std::vector<Block> blocks;
  for (const results::Row& row : results::of_kind(rows, "picture")) {
    blocks.push_back(Picture{results::field<std::string>(row, "caption"),
                             results::field<std::string>(row, "png")});
  }
  return blocks;
}

}  // namespace qact::report
