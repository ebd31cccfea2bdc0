#include "qact/data/download.h"

#include <curl/curl.h>

#include <memory>

#include "qact/base/fail.h"
#include "qact/data/digest.h"

namespace qact::data {
namespace {

using base::fail;

constexpr int kAttempts = 3;
constexpr long kConnectSeconds = 15;
constexpr long kStallSeconds = 60;  // without a byte

struct Transfer {
  fs::path path;
  int64_t start = 0;  // bytes from earlier attempts
  const DownloadProgress* progress = nullptr;
  std::unique_ptr<OutputFile> file;
  std::string failure;  // of writing
  bool stopped = false;
};

// The file is opened by the first byte: an attempt that gets none leaves none.
size_t on_bytes(char* bytes, size_t, size_t count, void* user) {
  auto* transfer = static_cast<Transfer*>(user);
  try {
    if (!transfer->file) {
      transfer->file = std::make_unique<OutputFile>(transfer->path, transfer->start > 0);
    }
    transfer->file->write({reinterpret_cast<const uint8_t*>(bytes), count});
    return count;
  } catch (const std::exception& error) {
    transfer->failure = error.what();
    return 0;
  }
}

int on_progress(void* user, curl_off_t total, curl_off_t done, curl_off_t, curl_off_t) {
  auto* transfer = static_cast<Transfer*>(user);
  if (!*transfer->progress) return 0;
  transfer->stopped =
      !(*transfer->progress)(transfer->start + done, total > 0 ? transfer->start + total : 0);
  return transfer->stopped;
}

void set_options(CURL* curl, const std::string& url, Transfer* transfer) {
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl, CURLOPT_MAXREDIRS, 10L);
  curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, kStallSeconds);
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "qact");
  curl_easy_setopt(curl, CURLOPT_RESUME_FROM_LARGE, static_cast<curl_off_t>(transfer->start));
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_bytes);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, transfer);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, transfer);
}

// True when the transfer is complete, false when it broke off and is worth another attempt.
bool attempt(const std::string& url, const fs::path& part, const DownloadProgress& progress) {
  const std::unique_ptr<CURL, void (*)(CURL*)> curl(curl_easy_init(), curl_easy_cleanup);
  Transfer transfer{part, 0, &progress, nullptr, "", false};
  if (fs::exists(part)) transfer.start = static_cast<int64_t>(fs::file_size(part));
  set_options(curl.get(), url, &transfer);
  const CURLcode code = curl_easy_perform(curl.get());
  if (transfer.file) transfer.file->keep();
  if (!transfer.failure.empty()) throw std::runtime_error(transfer.failure);
  if (transfer.stopped) fail("download", "stopped: ", url);
  long status = 0;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
  constexpr long kRangeNotSatisfiable = 416;
  if (status == kRangeNotSatisfiable) return true;  // all of it is here already
  if (status >= 400) fail("download", "expected the file, got status ", status, " from ", url);
  if (code == CURLE_RANGE_ERROR) {  // a server that cannot resume: from the start, then
    fs::remove(part);
    return false;
  }
  if (code == CURLE_OK) {
    if (!transfer.file && transfer.start == 0) write_file(part, {});
    return true;
  }
  const bool broke_off =
      code == CURLE_PARTIAL_FILE || code == CURLE_RECV_ERROR || code == CURLE_OPERATION_TIMEDOUT;
  if (!broke_off || !transfer.file) fail("download", curl_easy_strerror(code), ": ", url);
  return false;
}

}  // namespace

void download(const Download& what, const fs::path& target, const DownloadProgress& progress) {
  fs::create_directories(target.parent_path());
  fs::path part = target;
  part += ".part";
  int attempts = 0;
  while (!attempt(what.url, part, progress)) {
    if (++attempts == kAttempts) {
      fail("download", "expected the whole file, got ", fs::exists(part) ? fs::file_size(part) : 0,
           " bytes in ", kAttempts, " attempts (kept, to resume) from ", what.url);
    }
  }
  try {
    if (is_web_page(part)) fail("download", "expected a dataset, got a web page from ", what.url);
    check_digest(part, what.digest);
  } catch (...) {
    fs::remove(part);
    throw;
  }
  fs::rename(part, target);
}

}  // namespace qact::data
