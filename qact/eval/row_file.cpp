#include "qact/eval/row_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>

#include "qact/base/regular_file.h"

namespace qact::eval {
namespace {

using results::identity;
using results::Row;
using results::Rows;

[[noreturn]] void fail(const std::string& expected, const std::filesystem::path& path) {
  throw std::runtime_error("[eval] expected to " + expected + " " + path.string() +
                           ", got: " + std::generic_category().message(errno));
}

// Up to the last newline.
size_t complete_length(const std::string& text) {
  const size_t last = text.rfind('\n');
  return last == std::string::npos ? 0 : last + 1;
}

}  // namespace

RowFile::RowFile(std::filesystem::path path, Access access) : path_(std::move(path)) {
  base::expect_regular_file(path_);
  if (access == Access::write) open();
  read();
}

RowFile::~RowFile() {
  if (file_ >= 0) close(file_);
}

void RowFile::open() {
  file_ = ::open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (file_ < 0) fail("open", path_);
  if (flock(file_, LOCK_EX | LOCK_NB) != 0) {
    close(file_);
    throw std::runtime_error("[eval] expected to be the only writer of " + path_.string() +
                             ", got another one at work");
  }
}

void RowFile::read() {
  std::ifstream file(path_, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  const size_t complete = complete_length(text);
  if (file_ >= 0 && complete < text.size() && ftruncate(file_, static_cast<off_t>(complete)) != 0) {
    fail("cut the torn end of", path_);
  }
  text.resize(complete);
  rows_ = results::parse_rows(text, path_.string());
  results::check_evaluations(rows_, path_.string());
  known_.clear();
  for (const Row& row : rows_) known_.insert(identity(row));
}

void RowFile::append(const Rows& rows) {
  Rows fresh;
  for (const Row& row : rows) {
    if (has(row)) continue;
    known_.insert(identity(row));
    fresh.push_back(row);
  }
  const std::string text = results::format_rows(fresh);
  for (size_t done = 0; done < text.size();) {
    const ssize_t written = write(file_, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("write", path_);
    done += static_cast<size_t>(written);
  }
  if (fsync(file_) != 0) fail("sync", path_);
  rows_.insert(rows_.end(), fresh.begin(), fresh.end());
}

size_t RowFile::remove_if(const std::function<bool(const Row&)>& stale) {
  Rows kept;
  for (const Row& row : rows_) {
    if (!stale(row)) kept.push_back(row);
  }
  const size_t removed = rows_.size() - kept.size();
  if (removed == 0) return 0;
  results::write_rows(path_, kept);
  close(file_);
  open();
  read();
  return removed;
}

void OrderedRows::finish(int64_t job, Rows rows) {
  const std::scoped_lock lock(lock_);
  waiting_.emplace(job, std::move(rows));
  for (auto next = waiting_.find(next_); next != waiting_.end(); next = waiting_.find(next_)) {
    file_.append(next->second);
    if (written_) written_(next->second);
    waiting_.erase(next);
    next_ += 1;
  }
}

}  // namespace qact::eval
