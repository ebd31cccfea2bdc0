// The MNIST subset that the library carries (datasets/mnist-small), so that the first run
// needs no download.
#include "qact/data/factories.h"
#include "qact/data/idx.h"

// The four files, as they are in the repository.
#define QACT_EMBED(symbol, file)                                              \
  asm(".section .rodata\n"                                                    \
      ".global qact_" #symbol "_begin, qact_" #symbol                         \
      "_end\n"                                                                \
      "qact_" #symbol "_begin: .incbin \"" QACT_DATASETS "/mnist-small/" file \
      "\"\n"                                                                  \
      "qact_" #symbol "_end: .byte 0\n.previous\n");                          \
  extern "C" const uint8_t qact_##symbol##_begin[], qact_##symbol##_end[]

QACT_EMBED(train_images, "train-images-idx3-ubyte.gz");
QACT_EMBED(train_labels, "train-labels-idx1-ubyte.gz");
QACT_EMBED(test_images, "t10k-images-idx3-ubyte.gz");
QACT_EMBED(test_labels, "t10k-labels-idx1-ubyte.gz");

namespace qact::data {
namespace {

Split read_embedded(const fs::path&, const SplitId& id) {
  const bool train = id.split == SplitName::train;
  const base::Bytes images = train ? base::Bytes(qact_train_images_begin, qact_train_images_end)
                                   : base::Bytes(qact_test_images_begin, qact_test_images_end);
  const base::Bytes labels = train ? base::Bytes(qact_train_labels_begin, qact_train_labels_end)
                                   : base::Bytes(qact_test_labels_begin, qact_test_labels_end);
  Split out = idx_images(inflate_idx(images));
  out.labels = idx_labels(inflate_idx(labels).bytes);
  out.classes = 10;
  check_labels(out);
  return out;
}

}  // namespace

DatasetInfo mnist_small() {
  DatasetInfo out = mnist();
  out.name = "mnist-small";
  out.title = "a subset of MNIST inside the library";
  out.train = 12000;
  out.test = 2000;
  out.moments = {{0.13129}, {0.30864}};
  out.train_balance = out.test_balance = {};
  out.read = read_embedded;
  out.embedded = true;
  out.sources = {};
  return out;
}

}  // namespace qact::data
