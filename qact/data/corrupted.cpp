// The published corrupted datasets.
#include "qact/base/fail.h"
#include "qact/data/factories.h"
#include "qact/data/file.h"
#include "qact/data/npy_pair.h"

namespace qact::data {
namespace {

using base::fail;

// The 15 corruptions of the benchmark, in the published order.
std::vector<std::string> benchmark_corruptions() {
  return {"gaussian_noise",
          "shot_noise",
          "impulse_noise",
          "defocus_blur",
          "glass_blur",
          "motion_blur",
          "zoom_blur",
          "snow",
          "frost",
          "fog",
          "brightness",
          "contrast",
          "elastic_transform",
          "pixelate",
          "jpeg_compression"};
}

// The 4 held out for validation.
std::vector<std::string> extra_corruptions() {
  return {"speckle_noise", "gaussian_blur", "spatter", "saturate"};
}

// The info of a corrupted dataset, from that of the clean one.
DatasetInfo corrupted(DatasetInfo clean, const std::string& name, const std::string& title) {
  clean.clean = clean.name;
  clean.name = name;
  clean.title = title;
  clean.train = 0;
  clean.moments = {};
  clean.train_balance = {};
  clean.severities = 5;
  clean.corruptions = benchmark_corruptions();
  return clean;
}

// CORRUPTION.npy holds the five severities one after the other; labels.npy their labels.
Split read_severity(const fs::path& folder, const std::string& inner, const SplitId& id,
                    int classes) {
  const Split all = read_npy_pair(locate(folder, inner, id.corruption + ".npy"),
                                  locate(folder, inner, "labels.npy"), classes);
  if (all.count() % 5 != 0) {
    fail("corrupted", "expected five severities of one size, got ", all.count(), " images in ",
         locate(folder, inner, id.corruption + ".npy").string());
  }
  const int64_t count = all.count() / 5;
  return all.slice((id.severity - 1) * count, count);
}

DatasetInfo cifar_c(DatasetInfo clean, const std::string& title, const std::string& record,
                    const std::string& md5) {
  const std::string name = title;
  const int classes = clean.classes;
  DatasetInfo out = corrupted(std::move(clean), "", title);
  out.name = out.clean + "-c";
  for (const std::string& extra : extra_corruptions()) out.corruptions.push_back(extra);
  out.read = [name, classes](const fs::path& folder, const SplitId& id) {
    return read_severity(folder, name, id, classes);
  };
  out.sources = {{.downloads = {{"https://zenodo.org/records/" + record + "/files/" + name + ".tar",
                                 "md5:" + md5}},
                  .inside = name + "/"}};
  return out;
}

}  // namespace

DatasetInfo cifar10_c() {
  return cifar_c(cifar10(), "CIFAR-10-C", "2535967", "56bf5dcef84df0e2308c6dcbcbbd8499");
}

DatasetInfo cifar100_c() {
  return cifar_c(cifar100(), "CIFAR-100-C", "3555552", "11f0ed0f1191edbf9fa23466ae6021d3");
}

DatasetInfo tiny_imagenet_c() {
  DatasetInfo out = corrupted(tiny_imagenet(), "tiny-imagenet-c", "Tiny-ImageNet-C");
  out.read = [](const fs::path& folder, const SplitId& id) {
    const fs::path images =
        locate(folder, "Tiny-ImageNet-C", id.corruption) / std::to_string(id.severity);
    const Split split = read_class_folders(images, {});
    if (split.classes != 200) {
      fail("tiny-imagenet-c", "expected 200 classes, got ", split.classes, " in ", images.string());
    }
    return split;
  };
  // The first record is published with a checksum; of the other only the structure is checked.
  out.sources = {
      {.downloads = {{"https://zenodo.org/records/8206060/files/Tiny-ImageNet-C.tar",
                      "md5:f9c9a9dbdc11469f0b850190f7ad8be1"}},
       .inside = "Tiny-ImageNet-C/"},
      {.downloads = {{"https://zenodo.org/records/2536630/files/Tiny-ImageNet-C.tar", ""}},
       .inside = "Tiny-ImageNet-C/"}};
  return out;
}

// A folder per corruption, each with both splits at the one published severity; `identity` has the
// clean images.
DatasetInfo mnist_c() {
  DatasetInfo out = corrupted(mnist(), "mnist-c", "MNIST-C");
  out.train = mnist().train;
  out.train_balance = mnist().train_balance;
  out.severities = 1;
  out.corruptions = {"shot_noise",  "impulse_noise", "glass_blur",  "motion_blur",
                     "shear",       "scale",         "rotate",      "brightness",
                     "translate",   "stripe",        "fog",         "spatter",
                     "dotted_line", "zigzag",        "canny_edges", "identity"};
  out.read = [](const fs::path& folder, const SplitId& id) {
    const fs::path files = locate(folder, "mnist_c", id.corruption);
    const std::string name = to_string(id.split);
    return read_npy_pair(files / (name + "_images.npy"), files / (name + "_labels.npy"), 10);
  };
  out.sources = {{.downloads = {{"https://zenodo.org/records/3239543/files/mnist_c.zip",
                                 "md5:4b34b33045869ee6d424616cd3a65da3"}},
                  .inside = "mnist_c/"}};
  return out;
}

}  // namespace qact::data
