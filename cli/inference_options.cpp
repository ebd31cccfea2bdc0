#include "cli/inference_options.h"

#include "cli/text.h"
#include "cli/validators.h"

namespace qact::cli {

void add_inference_options(CLI::App& command, Choice choice, std::vector<std::string>& modes,
                           std::vector<std::string>& classifiers,
                           eval::InferenceOptions& inference) {
  const bool one = choice == Choice::one;
  const std::string which = one ? "One of " : "Any of ";
  std::vector<std::string> known = train::classifier_names();
  known.insert(known.begin(), "head");
  add_list(command, "--modes", modes,
           which + joined(eval::inference_modes(), ", ") + ": whose statistics and contexts");
  add_list(command, "--classifiers", classifiers,
           which + joined(known, ", ") + "; default: " + (one ? "the first" : "all") +
               " that the model has")
      ->check(one_of(known));
  command
      .add_option("--batch-size", inference.batch_size,
                  "Images in a batch; a remainder joins the last one")
      ->check(at_least(1));
  command.add_option("--prior", inference.prior,
                     "Mode prior: images that the running context counts as");
  command.add_option("--momentum", inference.momentum,
                     "Mode stream: how far the running context moves towards each batch, 0 to 1");
  command.add_option("--copies", inference.copies, "Mode augment: augmented copies of each image")
      ->check(at_least(1));
}

}  // namespace qact::cli
