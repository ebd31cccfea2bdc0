#include "qact/corrupt/write.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "qact/base/atomic_file.h"
#include "qact/base/bytes.h"
#include "qact/base/each_once.h"
#include "qact/base/fail.h"
#include "qact/base/parallel.h"
#include "qact/corrupt/manifest.h"
#include "qact/corrupt/select.h"
#include "qact/corrupt/target_lock.h"
#include "qact/image/jpeg.h"
#include "qact/image/npy.h"

namespace qact::corrupt {
namespace {

namespace fs = std::filesystem;
using base::as_text;
using nlohmann::json;

constexpr int64_t kBatch = 1024;
constexpr int kJpegQuality = 85;

class Writer {
 public:
  Writer(const CleanImages& images, const WriteOptions& options, const base::Progress& progress)
      : images_(images), options_(options), progress_(progress), manifest_(options.folder) {}

  Written run() {
    fs::create_directories(options_.folder);
    manifest_.check_images(made_with("", {}));
    const bool all = options_.severities.size() == kSeverities;
    const int64_t severities =
        options_.layout == Layout::mnist_c ? 1 : static_cast<int64_t>(options_.severities.size());
    total_ = images_.count() * severities * static_cast<int64_t>(options_.corruptions.size());
    if (options_.layout == Layout::cifar_c && all) {
      write_labels("labels.npy", kSeverities);
      for (const std::string& name : options_.corruptions) {
        write_array(name + ".npy", name, options_.severities);
      }
    } else {
      if (options_.layout == Layout::mnist_c) write_identity();
      for (const std::string& name : options_.corruptions) write_corruption(name);
    }
    return written_;
  }

 private:
  // MNIST-C has the clean images as well.
  void write_identity() {
    if (options_.shard != 0) return;
    fs::create_directories(options_.folder / "identity");
    write_labels("identity/" + images_.split + "_labels.npy", 1);
    write_once("identity/" + images_.split + "_images.npy",
               std::string(as_text(array_header(1))) + std::string(as_text(images_.pixels)));
  }

  void write_corruption(const std::string& name) {
    if (options_.layout == Layout::mnist_c) {
      fs::create_directories(options_.folder / name);
      write_labels(name + "/" + images_.split + "_labels.npy", 1);
      write_array(name + "/" + images_.split + "_images.npy", name,
                  {find_corruption(name).mnist_severity});
      return;
    }
    for (const int severity : options_.severities) {
      const std::string number = std::to_string(severity);
      if (options_.layout == Layout::folders) {
        write_images(name + "/" + number, name, severity);
      } else {
        fs::create_directories(options_.folder / number);
        write_labels(number + "/labels.npy", 1);
        write_array(number + "/" + name + ".npy", name, {severity});
      }
    }
  }

  json made_with(const std::string& name, const std::vector<int>& severities) const {
    const auto& size = images_.size;
    json out = {{"data", images_.name},
                {"data_hash", images_.hash},
                {"split", images_.split},
                {"shape", {images_.count(), size.height, size.width, size.channels}},
                {"severities", severities},
                {"seed", options_.seed}};
    if (name == "frost") out["frost"] = options_.frost ? options_.frost->name() : "procedural";
    return out;
  }

  // Whether this shard writes the next file; another's counts as done.
  bool is_mine(const std::vector<int>& severities) {
    if (next_++ % options_.shards == options_.shard) return true;
    advance(images_.count() * static_cast<int64_t>(severities.size()));
    return false;
  }

  // Whether the file is there already; it then counts as done. Asked before its lock, so that
  // several processes find a finished set, and under it: another one may have finished it just now.
  bool is_kept(const std::string& target, const std::string& name,
               const std::vector<int>& severities) {
    manifest_.read();
    if (!manifest_.has(target, made_with(name, severities))) return false;
    ++written_.kept;
    advance(images_.count() * static_cast<int64_t>(severities.size()));
    return true;
  }

  void finish(const std::string& target, const std::string& name,
              const std::vector<int>& severities) {
    manifest_.add(target, made_with(name, severities));
    ++written_.made;
  }

  void advance(int64_t images) {
    done_ += images;
    const double fraction =
        static_cast<double>(done_) / static_cast<double>(std::max<int64_t>(total_, 1));
    if (progress_ && !progress_(fraction)) {
      throw std::runtime_error("[corrupt] stopped; run the same command again to go on");
    }
  }

  Corruptor corruptor(const std::string& name, int severity) const {
    return {name, severity, images_.size, options_.seed, options_.frost};
  }

  // Calls write(pixels, first, count) for the corrupted images, batch after batch.
  template <class Write>
  void for_each_batch(const std::string& name, int severity, const Write& write) {
    const Corruptor corrupt = corruptor(name, severity);
    const int64_t values = images_.size.values();
    std::vector<uint8_t> out(kBatch * values);
    for (int64_t first = 0; first < images_.count(); first += kBatch) {
      const int64_t count = std::min(kBatch, images_.count() - first);
      corrupt.apply(images_.pixels.data() + first * values, first, count, out.data(),
                    options_.threads);
      write(std::span<const uint8_t>(out).first(count * values), first, count);
      advance(count);
    }
  }

  std::vector<uint8_t> array_header(int64_t times) const {
    const auto [height, width, channels] = images_.size;
    return image::make_npy_header("|u1", {images_.count() * times, height, width, channels});
  }

  void write_array(const std::string& target, const std::string& name,
                   const std::vector<int>& severities) {
    if (!is_mine(severities) || is_kept(target, name, severities)) return;
    const TargetLock lock(options_.folder / target);
    if (is_kept(target, name, severities)) return;
    base::AtomicFile file(options_.folder / target);
    file.write(as_text(array_header(static_cast<int64_t>(severities.size()))));
    for (const int severity : severities) {
      for_each_batch(name, severity, [&](std::span<const uint8_t> pixels, int64_t, int64_t) {
        file.write(as_text(pixels));
      });
    }
    file.commit();
    finish(target, name, severities);
  }

  // The labels once for each severity, in bytes as CIFAR-C has them where they fit.
  void write_labels(const std::string& target, int times) {
    if (images_.labels.empty() || options_.shard != 0) return;
    const bool wide = options_.layout == Layout::mnist_c ||
                      *std::max_element(images_.labels.begin(), images_.labels.end()) > 255;
    std::string bytes(as_text(image::make_npy_header(
        wide ? "<i8" : "|u1", {static_cast<int64_t>(images_.labels.size()) * times})));
    for (int i = 0; i < times; ++i) {
      for (const int64_t label : images_.labels) {
        for (int k = 0; k < (wide ? 8 : 1); ++k) bytes += static_cast<char>(label >> (8 * k));
      }
    }
    write_once(target, bytes);
  }

  // What is there already is not written again, so that a finished set may be read-only.
  void write_once(const std::string& target, const std::string& bytes) const {
    const fs::path path = options_.folder / target;
    if (fs::is_regular_file(path) && fs::file_size(path) == bytes.size()) {
      std::ifstream file(path, std::ios::binary);
      if (std::equal(bytes.begin(), bytes.end(), std::istreambuf_iterator<char>(file), {})) return;
    }
    base::write_atomically(path, bytes);
  }

  std::string class_name(int64_t label) const {
    if (!images_.class_names.empty()) return images_.class_names.at(label);
    // Padded, so that sorting the names sorts the classes.
    std::string digits = std::to_string(label);
    return std::string(digits.size() < 4 ? 4 - digits.size() : 0, '0') + digits;
  }

  // A folder of images is made under a temporary name and renamed when it is complete.
  void write_images(const std::string& target, const std::string& name, int severity) {
    if (!is_mine({severity})) return;
    if (images_.labels.empty()) {
      base::fail("corrupt", "expected labels for folders of classes, got none with ", images_.name);
    }
    const fs::path place = options_.folder / target, partial = place.string() + ".partial";
    if (is_kept(target, name, {severity})) return;
    const TargetLock lock(place);
    if (is_kept(target, name, {severity})) return;
    fs::remove_all(partial);
    try {
      for (const int64_t label : images_.labels)
        fs::create_directories(partial / class_name(label));
      for_each_batch(
          name, severity, [&](std::span<const uint8_t> pixels, int64_t first, int64_t count) {
            base::parallel_for(count, options_.threads, 16, [&](int64_t i) {
              write_image(partial, pixels.subspan(i * images_.size.values(), images_.size.values()),
                          first + i);
            });
          });
      sync(partial);
    } catch (...) {
      std::error_code ignored;
      fs::remove_all(partial, ignored);
      throw;
    }
    fs::remove_all(place);
    fs::rename(partial, place);
    finish(target, name, {severity});
  }

  void write_image(const fs::path& folder, std::span<const uint8_t> pixels, int64_t index) {
    image::Image image(images_.size);
    std::copy(pixels.begin(), pixels.end(), image.pixels.begin());
    const std::string digits = std::to_string(index);
    const fs::path path =
        folder / class_name(images_.labels[index]) /
        (std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits + ".JPEG");
    std::ofstream file(path, std::ios::binary);
    const std::vector<uint8_t> bytes = image::encode_jpeg(image, kJpegQuality, true);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<long>(bytes.size()));
    file.close();
    if (!file) {
      base::fail("corrupt", "cannot write ", path.string(), ": ", std::strerror(errno));
    }
  }

  // One call for the thousands of files of a folder.
  static void sync(const fs::path& folder) {
    const int file = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool synced = file >= 0 && syncfs(file) == 0;
    if (file >= 0) close(file);
    if (!synced) base::fail("corrupt", "cannot sync ", folder.string());
  }

  const CleanImages& images_;
  const WriteOptions& options_;
  const base::Progress& progress_;
  Manifest manifest_;
  Written written_;
  int64_t done_ = 0, total_ = 0;
  int64_t next_ = 0;  // file, of all shards
};

void check(const CleanImages& images, const WriteOptions& options) {
  const int64_t labels = static_cast<int64_t>(images.labels.size());
  if (labels != 0 && labels != images.count()) {
    base::fail("corrupt", "expected ", images.count(), " labels, got ", labels);
  }
  for (const std::string& name : options.corruptions) {
    if (options.layout == Layout::mnist_c && find_corruption(name).mnist_severity == 0) {
      base::fail("corrupt", "expected one of MNIST-C's corruptions for its layout, got ", name);
    }
    // Everything that cannot work is known before the first file is made.
    for (const int severity : options.severities) {
      Corruptor(name, severity, images.size, options.seed, options.frost);
    }
  }
}

}  // namespace

Written write_corrupted(const CleanImages& images, const WriteOptions& given,
                        const base::Progress& progress) {
  WriteOptions options = given;
  options.corruptions = base::each_once(given.corruptions);
  options.severities = select_severities(given.severities);
  check(images, options);
  return Writer(images, options, progress).run();
}

}  // namespace qact::corrupt
