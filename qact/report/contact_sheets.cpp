#include "qact/report/sections.h"

namespace qact::report {

// kind: contact_sheet, a PNG in base64 with its caption: contact sheets of the corruptions.
std::vector<Block> contact_sheets(const results::Rows& rows) {
  std::vector<Block> blocks;
  for (const results::Row& row : results::of_kind(rows, "contact_sheet")) {
    blocks.push_back(Image{results::field<std::string>(row, "caption"),
                           results::field<std::string>(row, "png")});
  }
  return blocks;
}

}  // namespace qact::report
