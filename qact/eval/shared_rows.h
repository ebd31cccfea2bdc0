// Rows of results that several ranks compute and the first one writes.
#pragma once

#include <set>
#include <string>

#include "qact/base/progress.h"
#include "qact/dist/world.h"
#include "qact/eval/row_file.h"

namespace qact::eval {

class SharedRows {
 public:
  // `name` tells the parts from those of other evaluations. All ranks make one, alike.
  SharedRows(const dist::World& world, std::string name, OrderedRows& ordered, int64_t parts);

  // The rows of a part, from the rank that computed it. From any thread.
  void finish(int64_t part, results::Rows rows);
  // `progress`, which on the first rank also writes what other ranks have finished.
  base::Progress collecting(const base::Progress& progress);
  // On the first rank, until all parts are written; throws base::Interrupted once `progress` says
  // so. On others, until the first one has ended.
  void wait(const base::Progress& progress);

 private:
  std::string key(int64_t part) const { return "rows/" + name_ + "/" + std::to_string(part); }
  void collect();
  void expect_ranks() const;

  const dist::World& world_;
  const std::string name_;
  OrderedRows& ordered_;
  std::mutex lock_;
  std::set<int64_t> missing_;
  c10::intrusive_ptr<c10d::Work> all_ended_;  // fails when a rank ends before its time
};

}  // namespace qact::eval
