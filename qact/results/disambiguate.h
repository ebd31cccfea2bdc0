// Settings that differ exactly where evaluations differ.
#pragma once

#include <vector>

#include "qact/results/evaluation.h"

namespace qact::results {

// All evaluations among the rows, with settings adjusted:
// - setting.frost: rows of other corruptions are repeated for each of the textures that rows of
//   generated frost have;
// - setting.official is cleared unless images differ: the same folder may move;
// - setting.data_hash is set where images differ and nothing else does;
// - setting.model_hash is set where one seed has two models and nothing else says why.
std::vector<Evaluation> evaluations(const Rows& rows);

}  // namespace qact::results
