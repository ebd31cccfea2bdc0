// The options that `qact eval` and `qact predict` share.
#pragma once

#include <string>
#include <vector>

#include "cli/commands.h"
#include "qact/eval/inference.h"

namespace qact::cli {

// How many modes and classifiers a command takes.
enum class Choice { one, any };

void add_inference_options(CLI::App& command, Choice choice, std::vector<std::string>& modes,
                           std::vector<std::string>& classifiers,
                           eval::InferenceOptions& inference);

}  // namespace qact::cli
