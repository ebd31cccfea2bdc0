// Lists without what is in them twice.
#pragma once

#include <algorithm>
#include <vector>

namespace qact::base {

// The items in their order, without those that were there before. For short lists.
template <class Item>
std::vector<Item> each_once(const std::vector<Item>& items) {
  std::vector<Item> out;
  for (const Item& item : items) {
    if (std::find(out.begin(), out.end(), item) == out.end()) out.push_back(item);
  }
  return out;
}

}  // namespace qact::base
