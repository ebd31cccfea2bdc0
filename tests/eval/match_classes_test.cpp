#include "qact/eval/match_classes.h"

#include <gtest/gtest.h>

#include "tests/base/message.h"

namespace qact::eval {
namespace {

data::Split images_of(std::vector<int64_t> labels, int classes, std::vector<std::string> names) {
  std::vector<uint8_t> pixels(labels.size());
  data::Split split = data::make_split({1, 1, 1}, classes, std::move(pixels), std::move(labels));
  split.class_names = std::move(names);
  return split;
}

const ModelClasses kAnimals = {3, {"cat", "cow", "dog"}};

TEST(MatchClasses, ByNameWhateverTheirPlaces) {
  const data::Split found =
      with_labels_of(kAnimals, images_of({0, 1, 1, 2}, 3, {"dog", "cat", "cow"}), "there");
  EXPECT_EQ(found.labels, (std::vector<int64_t>{2, 0, 0, 1}));
  EXPECT_EQ(found.class_names, kAnimals.names);
  EXPECT_EQ(missing_classes(kAnimals, found, "there"), "");
}

TEST(MatchClasses, SomeMayBeMissing) {
  const data::Split found =
      with_labels_of(kAnimals, images_of({0, 0, 1}, 2, {"cat", "dog"}), "there");
  EXPECT_EQ(found.labels, (std::vector<int64_t>{0, 0, 2}));
  EXPECT_EQ(found.classes, 3);
  EXPECT_EQ(missing_classes(kAnimals, found, "there"),
            "there has no test images of 1 of the 3 classes of the model: cow");
  EXPECT_EQ(missing_classes({3, {}}, images_of({1}, 3, {}), "there"),
            "there has no test images of 2 of the 3 classes of the model: 0, 2");
}

TEST(MatchClasses, NamesWhatTheModelDoesNotKnow) {
  EXPECT_EQ(message_of([&] {
              with_labels_of(kAnimals, images_of({0, 1, 2}, 3, {"cat", "cow", "fox"}), "there");
            }),
            "[eval] expected images of the model's classes (cat, cow, dog), got fox in there");
  // Nothing is asked of a class without images.
  const data::Split found =
      with_labels_of(kAnimals, images_of({1}, 3, {"cat", "cow", "fox"}), "there");
  EXPECT_EQ(found.labels, (std::vector<int64_t>{1}));
}

TEST(MatchClasses, ByPositionWhereNamesAreMissing) {
  for (const std::vector<std::string>& names : {std::vector<std::string>(), kAnimals.names}) {
    const data::Split unnamed = images_of({2, 0}, 3, {});
    EXPECT_EQ(with_labels_of({3, names}, unnamed, "there").labels, unnamed.labels);
    EXPECT_EQ(message_of([&] { with_labels_of({4, names}, unnamed, "there"); }),
              "[eval] expected the 4 classes of the model, by number since they have no names, got "
              "3 in there");
  }
  EXPECT_EQ(with_labels_of({3, {}}, images_of({2, 0}, 3, kAnimals.names), "there").labels,
            (std::vector<int64_t>{2, 0}));
}

}  // namespace
}  // namespace qact::eval
