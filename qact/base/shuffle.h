// A random order that is the same on every platform, unlike std::shuffle's.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "qact/base/random.h"

namespace qact::base {

// Fisher-Yates.
template <class Item>
void shuffle(std::vector<Item>& items, Random& random) {
  for (size_t i = items.size(); i > 1; --i) {
    std::swap(items[i - 1], items[static_cast<size_t>(random.uniform() * i)]);
  }
}

}  // namespace qact::base
