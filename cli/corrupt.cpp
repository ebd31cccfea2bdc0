// qact corrupt: writes a dataset's images corrupted, in the layout in which such sets are
// published, or draws a contact sheet of one image.
#include "qact/corrupt/corrupt.h"

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/progress_bar.h"
#include "cli/validators.h"
#include "cli/world.h"
#include "qact/base/atomic_file.h"
#include "qact/base/fail.h"
#include "qact/corrupt/contact_sheet.h"
#include "qact/corrupt/select.h"
#include "qact/corrupt/write.h"
#include "qact/data/dataset.h"
#include "qact/data/digest.h"
#include "qact/data/file.h"
#include "qact/data/npy_pair.h"
#include "qact/eval/frost.h"
#include "qact/image/png.h"

namespace qact::cli {
namespace {

namespace fs = std::filesystem;

struct CorruptCommand {
  std::string data = "mnist-small", data_dir, labels, split = "test", layout = "auto";
  std::string output, sheet, frost = "procedural";
  std::vector<std::string> corruptions;
  std::vector<int> severities = {1, 2, 3, 4, 5};
  uint64_t data_seed = 0;
  int threads = 0;
  std::string shard;
  int64_t limit = 0, image = 0;  // limit 0: all
};

// A folder per class beside the images says what the classes are called.
std::vector<std::string> class_folders(const fs::path& folder, int classes) {
  std::vector<std::string> names;
  for (const fs::path& train : {folder / "train", folder / "tiny-imagenet-200" / "train"}) {
    if (!fs::is_directory(train)) continue;
    names = data::class_folders(train);
    break;
  }
  return static_cast<int>(names.size()) == classes ? names : std::vector<std::string>();
}

// The images, what keeps them in memory, and whether they are images in folders.
struct Input {
  corrupt::CleanImages images;
  data::Split split;
  bool folders = false;
};

bool is_array(const std::string& data) { return fs::path(data).extension() == ".npy"; }

Input read_input(const CorruptCommand& command) {
  Input input;
  data::Split& split = input.split;
  std::string name = command.data;
  if (data::is_image_file(name)) {
    image::Image image = data::read_image(name, {.channels = 0});
    split = data::make_split(image.size, 1, std::move(image.pixels), {0});
  } else if (is_array(name)) {
    const data::Blob file = data::map_file(name);
    split = command.labels.empty()
                ? data::with_file_name(name, [&] { return data::npy_images(file); })
                : data::read_npy_pair(name, command.labels, 0);
  } else {
    const data::Dataset opened = data::open_dataset(name, data::data_folder(command.data_dir));
    split = opened.read(
        {.split = command.split == "train" ? data::SplitName::train : data::SplitName::test});
    name = opened.info.name;
    input.images.class_names = class_folders(opened.folder, split.classes);
    input.folders = !input.images.class_names.empty();
  }
  const int64_t all = static_cast<int64_t>(split.pixels.size()) / split.size.values();
  const int64_t count = command.limit > 0 ? std::min(command.limit, all) : all;
  input.images.name = name;
  input.images.hash = data::digest_of(split);
  input.images.split = command.split;
  input.images.size = split.size;
  input.images.pixels = split.pixels.first(count * split.size.values());
  input.images.labels = split.labels;
  if (!split.labels.empty()) input.images.labels.resize(count);
  return input;
}

corrupt::Layout chosen_layout(const std::string& name, const Input& input) {
  if (name == "cifar-c") return corrupt::Layout::cifar_c;
  if (name == "mnist-c") return corrupt::Layout::mnist_c;
  if (name == "folders") return corrupt::Layout::folders;
  return input.folders ? corrupt::Layout::folders : corrupt::Layout::cifar_c;
}

void draw_sheet(const CorruptCommand& command, const Input& input,
                std::shared_ptr<const corrupt::FrostTextures> frost) {
  const auto& images = input.images;
  if (command.image >= images.count()) {
    base::fail("corrupt", "expected --image below ", images.count(), ", got ", command.image);
  }
  image::Image image(images.size);
  std::copy_n(images.pixels.data() + command.image * images.size.values(), images.size.values(),
              image.pixels.begin());
  const image::Image sheet = corrupt::contact_sheet(
      image, corrupt::select_corruptions(command.corruptions, images.size),
      corrupt::select_severities(command.severities), command.data_seed, std::move(frost));
  const std::vector<uint8_t> bytes = image::encode_png(sheet);
  base::write_atomically(command.sheet,
                         {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  std::printf("%s: %d x %d\n", command.sheet.c_str(), sheet.size.width, sheet.size.height);
}

struct Shard {
  int index = 0, count = 1;
};

// Under torchrun, each rank is a shard.
Shard chosen_shard(const std::string& text) {
  if (text.empty()) return {expect_rank().rank, expect_rank().size};
  Shard shard;
  char rest = 0;
  if (std::sscanf(text.c_str(), "%d/%d%c", &shard.index, &shard.count, &rest) != 2 ||
      shard.index < 0 || shard.count < 1 || shard.index >= shard.count) {
    throw CLI::ValidationError("[corrupt] expected --shard I/N with 0 <= I < N, got '" + text +
                               "'");
  }
  return shard;
}

void write_set(const CorruptCommand& command, const Input& input,
               std::shared_ptr<const corrupt::FrostTextures> frost) {
  corrupt::WriteOptions options;
  options.folder = command.output;
  options.layout = chosen_layout(command.layout, input);
  options.corruptions = corrupt::select_corruptions(command.corruptions, input.images.size);
  options.severities = command.severities;
  options.seed = command.data_seed;
  options.threads = command.threads;
  const Shard shard = chosen_shard(command.shard);
  options.shard = shard.index;
  options.shards = shard.count;
  options.frost = std::move(frost);
  const InterruptGuard guard;
  corrupt::Written written;
  const auto start = std::chrono::steady_clock::now();
  {
    ProgressBar bar("corrupt");
    written = corrupt::write_corrupted(input.images, options, [&](double share) {
      bar.show(share);
      return !guard.interrupted();
    });
  }
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  std::printf("%s: %d made, %d kept, in %s\n", command.output.c_str(), written.made, written.kept,
              duration(spent.count()).c_str());
}

void run_corrupt(const CorruptCommand& command) {
  const Input input = read_input(command);
  const auto frost = eval::open_frost(command.frost, data::data_folder(command.data_dir));
  if (!command.sheet.empty() && this_rank().rank == 0) draw_sheet(command, input, frost);
  if (!command.output.empty()) write_set(command, input, frost);
}

std::string all_names() {
  std::string names;
  for (const corrupt::Corruption& corruption : corrupt::corruptions()) {
    names += (names.empty() ? "" : ", ") + std::string(corruption.name);
  }
  return names;
}

// Wrong use, told before anything is read.
void check(const CorruptCommand& command, const std::function<bool(const char*)>& given) {
  if (command.sheet.empty() && command.output.empty()) {
    throw CLI::ValidationError("[corrupt] expected --output DIR or --sheet FILE, got neither");
  }
  if (given("--image") && command.sheet.empty()) {
    throw CLI::ValidationError("[corrupt] expected --image with --sheet, whose image it chooses");
  }
  for (const char* option : {"--layout", "--shard"}) {
    if (!given(option) || !command.output.empty()) continue;
    throw CLI::ValidationError(std::string("[corrupt] expected ") + option +
                               " with --output, whose files it is about");
  }
  if (!command.labels.empty() && !is_array(command.data)) {
    throw CLI::ValidationError("[corrupt] expected --labels with a .npy array of images, got " +
                               command.data);
  }
  if (command.layout == "mnist-c" && given("--severities")) {
    throw CLI::ValidationError(
        "[corrupt] expected no --severities with --layout mnist-c, whose corruptions have one "
        "each");
  }
  chosen_shard(command.shard);
  check_use([&] { corrupt::select_corruptions(command.corruptions, {}); });
  const bool is_file = data::is_image_file(command.data) || is_array(command.data);
  if (!is_file) check_dataset_name(command.data);
}

}  // namespace

void setup_corrupt(CLI::App& app) {
  auto options = std::make_shared<CorruptCommand>();
  CLI::App* command = app.add_subcommand(
      "corrupt", "Corrupt a dataset as the robustness benchmarks do, at five severities");
  command->option_defaults()->always_capture_default();
  command->add_option("--data", options->data,
                      "Name of a dataset, path of a custom one, a .npy array of images, or an "
                      "image");
  command->add_option("--data-dir", options->data_dir,
                      "Folder of the datasets; default: $QACT_DATA, else ~/.cache/qact");
  command->add_option("--labels", options->labels, "Another .npy array: the labels of --data");
  command->add_option("--split", options->split, "train or test")->check(one_of({"train", "test"}));
  command->add_option("--limit", options->limit, "Only the first so many images; 0: all")
      ->check(at_least(0));
  command->add_option("-o,--output", options->output,
                      "Folder for the corrupted set; files made with the same options are kept");
  add_list(*command, "--corruptions", options->corruptions,
           "benchmark, extra, mnist, or names: " + all_names() +
               "; default: mnist for digits of 28 x 28, else benchmark");
  add_list(*command, "--severities", options->severities, "From 1 to 5; mnist-c has its own")
      ->check(between(1, corrupt::kSeverities));
  command
      ->add_option("--layout", options->layout,
                   "auto, cifar-c (arrays), folders (JPEG, as Tiny-ImageNet-C) or mnist-c")
      ->check(one_of({"auto", "cifar-c", "folders", "mnist-c"}));
  command->add_option("--frost", options->frost, eval::kFrostHelp)->check(eval::frost_refusal);
  command->add_option("--data-seed", options->data_seed, "Draws the corruptions");
  command->add_option("--threads", options->threads, "Images corrupted at a time; 0: one per core")
      ->check(thread_count());
  command->add_option(
      "--shard", options->shard,
      "I/N, with I from 0 to N - 1: write every N-th file, from the I-th on, beside "
      "the processes that write the others; default: all; under torchrun, the rank's");
  command->add_option("--sheet", options->sheet,
                      "Write a contact sheet, a PNG of one image under all corruptions");
  command->add_option("--image", options->image, "Index of the image on the contact sheet")
      ->check(at_least(0));
  command->callback([options, command] {
    check(*options, [&](const char* option) { return command->count(option) > 0; });
    run_corrupt(*options);
  });
}

}  // namespace qact::cli
