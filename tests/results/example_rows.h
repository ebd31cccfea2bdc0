// A complete evaluation and its row, for tests that change a field.
#pragma once

#include "qact/results/evaluation.h"

namespace qact::results {

inline Evaluation example_evaluation(const std::string& corruption = "none", int severity = 0) {
  Evaluation e;
  e.kind = "scores";
  e.corruption = corruption;
  e.severity = severity;
  e.n = 1000;
  e.model_hash = "0123456789abcdef";
  e.data_hash = "aaaaaaaaaaaaaaaa";
  e.epoch = 20;
  e.setting = {.dataset = "cifar10",
               .model = "resnet18",
               .activation = "qact",
               .placement = "early",
               .loss = "cross-entropy",
               .mode = "batch",
               .adapt = "none",
               .stream = "single",
               .mixture = {},
               .classifier = "head",
               .batch_size = 500,
               .prior = {},
               .copies = {},
               .momentum = {},
               .weights = "model",
               .data_seed = 0,
               .source = "generated",
               .official = {},
               .frost = {},
               .limit = 0,
               .clean_hash = "aaaaaaaaaaaaaaaa",
               .training = {R"({"lr":0.1,"momentum":0.9,"batch-size":128,"lr-steps":[5,10]})"},
               .model_hash = "",
               .data_hash = ""};
  return e;
}

inline Row score_row(const Evaluation& e, double accuracy) {
  Row row = to_row(e);
  row["accuracy"] = accuracy;
  row["ece_top"] = 0.1;
  row["map100"] = nullptr;
  row["command"] = "qact eval <run>";
  return row;
}

}  // namespace qact::results
