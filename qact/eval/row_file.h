// results.jsonl while rows are added to it. A process that is killed leaves complete rows and at
// most one incomplete line.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "qact/results/evaluation.h"

namespace qact::eval {

class RowFile {
 public:
  enum class Access { write, read };
  // To write, locks the file, throws where another process has, and cuts off an incomplete last
  // line. To read takes what is there.
  explicit RowFile(std::filesystem::path path, Access access = Access::write);
  ~RowFile();
  RowFile(const RowFile&) = delete;
  RowFile& operator=(const RowFile&) = delete;

  bool has(const results::Row& row) const { return known_.contains(results::identity(row)); }
  const results::Rows& rows() const { return rows_; }

  // Writes the rows that it does not have yet, and syncs.
  void append(const results::Rows& rows);
  // Removes rows, atomically; returns how many.
  size_t remove_if(const std::function<bool(const results::Row&)>& stale);

 private:
  void open();
  void read();

  std::filesystem::path path_;
  int file_ = -1;
  results::Rows rows_;
  std::set<std::string> known_;
};

// Writes the rows of jobs in the order of the jobs, whichever job ends first.
class OrderedRows {
 public:
  using Written = std::function<void(const results::Rows& rows)>;
  OrderedRows(RowFile& file, const Written& written) : file_(file), written_(written) {}

  void finish(int64_t job, results::Rows rows);

 private:
  RowFile& file_;
  const Written& written_;
  std::mutex lock_;
  std::map<int64_t, results::Rows> waiting_;
  int64_t next_ = 0;
};

}  // namespace qact::eval
