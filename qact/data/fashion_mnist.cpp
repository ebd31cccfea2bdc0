#include "qact/data/factories.h"
#include "qact/data/idx.h"

namespace qact::data {

DatasetInfo fashion_mnist() {
  DatasetInfo out;
  out.name = "fashion-mnist";
  out.title = "Fashion-MNIST: articles of clothing";
  out.size = {28, 28, 1};
  out.classes = 10;
  out.train = 60000;
  out.test = 10000;
  out.normalisation = {{0.2860}, {0.3530}};
  out.moments = {{0.286041}, {0.353024}};
  out.class_names = {"T-shirt", "trouser", "pullover", "dress", "coat",
                     "sandal",  "shirt",   "sneaker",  "bag",   "ankle boot"};
  out.read = [](const fs::path& folder, const SplitId& id) {
    return read_idx(folder, id.split, 10);
  };
  out.sources = {
      idx_source("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
                 {"8d4fb7e6c68d591d4c3dfef9ec88bf0d", "25c81989df183df01b3e8a0aad5dffbe",
                  "bef4ecab320f06d8554ea6380940ec79", "bb300cfdad3c16e7a12a480ee83cd310"}),
      {.kind = Source::Kind::debian,
       .package = "dataset-fashion-mnist",
       .inside = "usr/share/datasets/fashion-mnist/"}};
  return out;
}

}  // namespace qact::data
