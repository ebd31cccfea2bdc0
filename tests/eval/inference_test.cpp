#include "qact/eval/inference.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <map>

#include "qact/data/augment.h"
#include "qact/nn/context_mode.h"
#include "qact/safetensors/torch/tensors.h"
#include "qact/train/device.h"
#include "qact/train/fit_classifiers.h"
#include "tests/base/message.h"
#include "tests/eval/evaluation_fixture.h"

namespace qact::eval {
namespace {

using nn::ContextMode;
using torch::Tensor;

// (v / 255 - mean) / std, planes first, of one image; dithered.
Tensor plain_image(const train::ModelCard& card, const image::Image& image,
                   base::Random dither = data::inference_dither()) {
  const auto [height, width, channels] = image.size;
  Tensor out = torch::empty({1, channels, height, width});
  for (int c = 0; c < channels; ++c) {
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        const double v = image.row(y)[x * channels + c] / 255.0;
        out[0][c][y][x] = (v - card.normalisation.mean[c]) / card.normalisation.std[c];
      }
    }
  }
  if (card.dither) {
    data::add_dither(image.size, data::normalisation_table(card.normalisation, channels), dither,
                     out.data_ptr<float>());
  }
  return out;
}

Tensor plain_images(const train::ModelCard& card, const data::Split& split, int64_t first,
                    int64_t last) {
  std::vector<Tensor> all;
  for (int64_t i = first; i < last; ++i) {
    all.push_back(plain_image(card, data::crop_flip(split.image(i), split.size, {})));
  }
  return torch::cat(all);
}

double difference(const Tensor& a, const Tensor& b) { return (a - b).abs().max().item<double>(); }

// Each mode for networks with and without quantile activations: infer() on one copy of the model,
// the definition of the mode on another.
class Inferences : public ::testing::TestWithParam<const char*> {
 protected:
  static const EvaluationFixture& folder() {
    static std::map<std::string, EvaluationFixture> folders;
    return folders.try_emplace(GetParam(), GetParam()).first->second;
  }

  Inferences()
      : model_(folder().model()), plain_(folder().model()), split_(folder().test_images()) {
    plain_.network->eval();
    options_.batch_size = 10;
  }

  Tensor infer_in(const std::string& mode) {
    options_.mode = mode;
    return infer(model_, split_, options_, {"head"}).probabilities.at(0);
  }
  Tensor images(int64_t first, int64_t last) {
    return plain_images(plain_.card, split_, first, last);
  }
  Tensor forward(const Tensor& x) {
    const torch::NoGradGuard no_grad;
    return plain_.network->forward(x).logits.softmax(1);
  }
  // Batches of 10, 10, 10 and 11.
  Tensor forward_batches() {
    return torch::cat({forward(images(0, 10)), forward(images(10, 20)), forward(images(20, 30)),
                       forward(images(30, 41))});
  }

  train::Model model_, plain_;
  data::Split split_;
  InferenceOptions options_;
};

TEST_P(Inferences, TrackedIsEveryImageOnItsOwn) {
  const Tensor all = infer_in("tracked");
  for (const int64_t i : {0, 17, 40}) {
    EXPECT_LT(difference(all.narrow(0, i, 1), forward(images(i, i + 1))), 1e-5);
  }
}

TEST_P(Inferences, BatchIsTrainingsForward) {
  plain_.network->train();
  EXPECT_LT(difference(infer_in("batch"), forward_batches()), 1e-5);
}

TEST_P(Inferences, PriorCountsImages) {
  options_.prior = 4;
  nn::set_context_mode(*plain_.network, ContextMode::prior, 4);
  const Tensor found = infer_in("prior");
  EXPECT_LT(difference(found, forward_batches()), 1e-5);
  options_.batch_size = 1;
  EXPECT_GT(difference(infer_in("prior"), found), 1e-4);
}

TEST_P(Inferences, StreamDriftsFromBatchToBatchAndStartsAnew) {
  options_.momentum = 0.3;
  nn::set_context_mode(*plain_.network, ContextMode::stream);
  nn::set_context_momentum(*plain_.network, 0.3);
  const Tensor found = infer_in("stream");
  EXPECT_LT(difference(found, forward_batches()), 1e-5);
  EXPECT_TRUE(torch::equal(found, infer_in("stream")));
  options_.momentum = 0;
  EXPECT_TRUE(torch::allclose(infer_in("stream"), infer_in("tracked"), 0, 1e-5));
  EXPECT_GT(difference(found, infer_in("tracked")), 1e-4);
}

TEST_P(Inferences, AugmentIsABatchOfOneImagesCopies) {
  options_.copies = 5;
  options_.seed = 7;
  options_.augmentation = {.pad = 2, .flip = true};
  const Tensor all = infer_in("augment");
  nn::set_context_mode(*plain_.network, ContextMode::batch);
  for (const int64_t i : {0, 40}) {
    std::vector<Tensor> context = {images(i, i + 1)};
    base::Random random(7, base::Stream::copies, i);
    for (int k = 0; k < 5; ++k) {
      const data::CropFlip placement = data::draw_crop_flip(options_.augmentation, &random);
      context.push_back(plain_image(plain_.card,
                                    data::crop_flip(split_.image(i), split_.size, placement),
                                    base::Random(7, base::Stream::dither, i, k)));
    }
    EXPECT_LT(difference(all.narrow(0, i, 1), forward(torch::cat(context)).narrow(0, 0, 1)), 1e-5);
  }
}

TEST_P(Inferences, DatasetUsesTheMeanOverAFirstPass) {
  nn::reset_contexts(*plain_.network);
  nn::set_context_momentum(*plain_.network, std::nullopt);
  plain_.network->train();
  forward_batches();
  plain_.network->eval();
  EXPECT_LT(difference(infer_in("dataset"), forward(images(0, 41))), 1e-5);
}

// The classifiers on embeddings are those fitted to the same kind of context; the quantile
// classifier ranks among those of the batch, of training, or of all images.
TEST_P(Inferences, ClassifiersFollow) {
  options_.mode = "tracked";
  const Tensor labels = torch::tensor(split_.labels, torch::kLong);
  const train::LabelledEmbeddings known{infer(model_, split_, options_, {}).embedding, labels};
  EXPECT_EQ(classifiers_of(model_), std::vector<std::string>{"head"});
  const train::LabelledEmbeddings others{known.embedding.flip(0), labels};
  model_.classifiers = {train::fit_classifiers(known, known, 3),
                        train::fit_classifiers(others, others, 3)};
  const std::vector<std::string> names = {"head", "quantile", "logistic"};
  EXPECT_EQ(classifiers_of(model_), names);
  for (const std::string mode : {"tracked", "batch", "dataset"}) {
    options_.mode = mode;
    const InferenceOutput out = infer(model_, split_, options_, names);
    const auto plain = [&](const char* name, int64_t first, int64_t last) {
      const bool tracked = mode == "tracked";
      train::Classifiers fitted = tracked ? model_.classifiers.tracked : model_.classifiers.batch;
      nn::set_context_mode(*fitted.quantile, tracked ? ContextMode::tracked : ContextMode::batch);
      return train::probabilities(fitted, name, out.embedding.slice(0, first, last));
    };
    EXPECT_LT(difference(out.probabilities[2], plain("logistic", 0, 41)), 1e-5);
    const Tensor quantile = mode == "batch"
                                ? torch::cat({plain("quantile", 0, 10), plain("quantile", 10, 20),
                                              plain("quantile", 20, 30), plain("quantile", 30, 41)})
                                : plain("quantile", 0, 41);
    EXPECT_LT(difference(out.probabilities[1], quantile), 1e-5) << mode;
  }
  // In a stream the quantile classifier's context drifts, too, and starts anew.
  options_.mode = "stream";
  options_.momentum = 0.3;
  const InferenceOutput out = infer(model_, split_, options_, names);
  EXPECT_TRUE(
      torch::equal(infer(model_, split_, options_, names).probabilities[1], out.probabilities[1]));
  train::Classifiers drifting = model_.classifiers.for_mode(ContextMode::stream);
  nn::set_context_mode(*drifting.quantile, ContextMode::stream);
  nn::set_context_momentum(*drifting.quantile, 0.3);
  std::vector<Tensor> ranked;
  for (const auto& [first, last] : batches_of(41, 10)) {
    ranked.push_back(
        train::probabilities(drifting, "quantile", out.embedding.slice(0, first, last)));
  }
  EXPECT_LT(difference(out.probabilities[1], torch::cat(ranked)), 1e-5);
  model_.card.loss = "watershed";
  expect_in("(quantile, logistic), got head",
            message_of([&] { check_classifiers(model_, {"head"}); }));
}

// After each mode, also when it was stopped half-way, the model's statistics and its next forward
// pass are those of a model just loaded.
TEST_P(Inferences, LeaveTheModelAsItWas) {
  options_.copies = 2;
  model_.network->eval();
  const auto before = safetensors::state_dict(*plain_.network);
  const Tensor expected = forward(images(0, 10));
  for (const std::string& mode : inference_modes()) {
    options_.mode = mode;
    for (const bool stopped : {false, true}) {
      SCOPED_TRACE(mode + (stopped ? ", stopped" : ""));
      int calls = 0;
      const auto pass = [&] {
        infer(model_, split_, options_, {"head"}, [&](int64_t) {
          if (stopped && ++calls == 2) throw std::runtime_error("stop");
        });
      };
      EXPECT_EQ(message_of(pass), stopped ? "stop" : "nothing was thrown");
      const torch::NoGradGuard no_grad;
      EXPECT_TRUE(torch::equal(model_.network->forward(images(0, 10)).logits.softmax(1), expected));
      for (const auto& [name, tensor] : safetensors::state_dict(*model_.network)) {
        EXPECT_TRUE(torch::equal(tensor, before.at(name))) << name;
      }
    }
  }
}

TEST_P(Inferences, ASingleImageIsNoBatch) {
  options_.batch_size = 1;
  EXPECT_EQ(infer_in("dataset").size(0), 41);
  expect_in("expected batches of 2 or more images in mode batch",
            message_of([&] { infer_in("batch"); }));
}

INSTANTIATE_TEST_SUITE_P(Networks, Inferences, ::testing::Values("qact", "relu"));

TEST(Inference, ARemainderJoinsTheLastBatch) {
  using Batches = std::vector<std::pair<int64_t, int64_t>>;
  EXPECT_EQ(batches_of(0, 4), Batches{});
  EXPECT_EQ(batches_of(3, 4), (Batches{{0, 3}}));
  EXPECT_EQ(batches_of(8, 4), (Batches{{0, 4}, {4, 8}}));
  EXPECT_EQ(batches_of(11, 4), (Batches{{0, 4}, {4, 11}}));
}

TEST(Inference, RefusesWhatItCannotDo) {
  const auto refused = [](auto change) {
    InferenceOptions options;
    change(options);
    return message_of([&] { check(options); });
  };
  EXPECT_EQ(refused([](InferenceOptions& o) { o.mode = "own"; }),
            "[inference] expected a mode of tracked, batch, prior, stream, augment, dataset, got "
            "'own'");
  EXPECT_EQ(refused([](InferenceOptions& o) { o.batch_size = 0; }),
            "[inference] expected --batch-size of 1 or more, got 0");
  for (const double prior : {-1.0, double{NAN}, double{INFINITY}}) {
    expect_in("--prior of 0 or more images, got", refused([&](auto& o) { o.prior = prior; }));
  }
  for (const double momentum : {-0.1, 1.1, double{NAN}}) {
    expect_in("--momentum within 0 and 1, got", refused([&](auto& o) { o.momentum = momentum; }));
  }
  expect_in("--copies of 1 or more, got 0", refused([](auto& o) { o.copies = 0; }));
  EXPECT_EQ(refused([](InferenceOptions& o) { o.prior = o.momentum = 0; }), "nothing was thrown");
}

TEST_P(Inferences, RefuseImagesOfAnotherSizeAndNone) {
  const data::Split wide = data::make_split({16, 17, 1}, 3, std::vector<uint8_t>(16 * 17), {0});
  EXPECT_EQ(message_of([&] { infer(model_, wide, options_, {"head"}); }),
            "[inference] expected images of 16x16 and 1 channels for the network, got 16x17 and 1");
  EXPECT_EQ(message_of([&] { infer(model_, split_.slice(0, 0), options_, {"head"}); }),
            "[inference] expected an image or more, got none");
}

TEST(Inference, RefusesDevicesThatAreNotThere) {
  EXPECT_EQ(message_of([] { train::check_device("predict", "cpu"); }), "nothing was thrown");
  const std::string message = message_of([] { train::check_device("predict", "cuda:99"); });
  expect_in("[predict] expected --device cpu or one of the ", message);
  expect_in(" GPUs that torch sees, got cuda:99", message);
}

// Of finite weights that overflow.
TEST_P(Inferences, RefuseProbabilitiesThatAreNotFinite) {
  const torch::NoGradGuard no_grad;
  for (const auto& parameter : model_.network->named_parameters()) {
    if (parameter.value().dim() == 2) parameter.value().fill_(3e38);
  }
  expect_in("expected finite probabilities from the classifier head, got others for 41 of 41",
            message_of([&] { infer_in("tracked"); }));
}

}  // namespace
}  // namespace qact::eval
