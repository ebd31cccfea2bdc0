#include "qact/eval/evaluated_run.h"

#include "qact/base/fail.h"
#include "qact/data/digest.h"
#include "qact/eval/inference.h"

namespace qact::eval {

// The file of the model is loaded here and nowhere else: its copies are made in memory.
LoadedRun load_run(const train::RunFolder& folder, const std::string& weights,
                   const std::vector<std::string>& classifiers) {
  EvaluatedRun run;
  run.config = train::read_config(folder.config());
  const std::filesystem::path path =
      train::expect_in_run(weights == "best" ? folder.best() : folder.model());
  const auto hash = [&] { return data::digest_of(path, "sha256").substr(0, data::kShortDigest); };
  run.hash = hash();
  train::Model model = train::load_model(path);
  if (hash() != run.hash) {
    base::fail("eval", "expected ", path.string(),
               " to stay as it is while it is read, got another one: is it being trained?");
  }
  run.classifiers = classifiers.empty() ? classifiers_of(model) : classifiers;
  check_classifiers(model, run.classifiers);
  if (run.classifiers.empty()) {
    base::fail("eval", "expected a model with a classifier, got none in ", path.string(),
               ": the loss ", model.card.loss, " trains none, and none was fitted");
  }
  run.card = model.card;
  return {std::move(run), std::move(model)};
}

}  // namespace qact::eval
