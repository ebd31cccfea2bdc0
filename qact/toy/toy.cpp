#include "qact/toy/toy.h"

#include <torch/nn/functional/loss.h>
#include <torch/optim/adam.h>

#include "qact/base/jobs.h"
#include "qact/ops/single_thread_guard.h"
#include "qact/results/toy.h"
#include "qact/toy/illustration.h"
#include "qact/toy/network.h"
#include "qact/toy/problem.h"

namespace qact::toy {
namespace {

// Streams do not depend on the network: those of one seed begin with the same random numbers and
// see the same contexts.
using base::Stream;

// A training step costs about three times the evaluation of a context.
constexpr int64_t kStepUnits = 3;

// Returns the loss of the last step.
double train(torch::nn::Sequential& network, const ToyProblem& problem, int64_t seed,
             const ToyOptions& options, base::Work& work) {
  base::Random random(static_cast<uint64_t>(seed), Stream::toy_training);
  torch::optim::Adam optimiser(network->parameters(),
                               torch::optim::AdamOptions(options.learning_rate));
  network->train();
  torch::Tensor loss;
  for (int64_t step = 0; step < options.steps; ++step) {
    const ToyBatch batch = problem.draw(options.batch_size, random);
    loss = torch::cross_entropy_loss(network->forward(batch.x), batch.y);
    optimiser.zero_grad();
    loss.backward();
    optimiser.step();
    work.advance(kStepUnits);
  }
  return loss.item<double>();
}

std::vector<int64_t> evaluate(torch::nn::Sequential& network, const ToyProblem& problem,
                              int64_t seed, const ToyOptions& options, base::Work& work) {
  torch::NoGradGuard no_grad;
  base::Random random(static_cast<uint64_t>(seed), Stream::toy_test);
  network->eval();
  std::vector<int64_t> correct;
  for (int64_t context = 0; context < options.contexts; ++context) {
    const ToyBatch batch = problem.draw(options.batch_size, random);
    const torch::Tensor predicted = network->forward(batch.x).argmax(1);
    correct.push_back(predicted.eq(batch.y).sum().item<int64_t>());
    work.advance(1);
  }
  return correct;
}

results::ToyScore score(const ToyNetwork& chosen, int64_t seed, const ToyOptions& options,
                        base::Work& work) {
  const ToyProblem& problem = toy_problem(chosen.problem);
  base::Random random(static_cast<uint64_t>(seed), Stream::toy_weights);
  torch::nn::Sequential network = chosen.make(options.width);
  initialise(network, random);
  const double loss = train(network, problem, seed, options, work);
  return {.experiment = chosen.problem,
          .network = chosen.name,
          .label = chosen.label,
          .seed = seed,
          .steps = options.steps,
          .width = options.width,
          .batch_size = options.batch_size,
          .learning_rate = options.learning_rate,
          .bayes = problem.bayes,
          .loss = loss,
          .correct = evaluate(network, problem, seed, options, work)};
}

results::Rows illustration(const std::string& experiment) {
  base::Random random(0, Stream::toy_illustration);
  return experiment == "circle" ? circle_illustration(random) : monotone_illustration(random);
}

void check_range(const char* name, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return;
  throw std::invalid_argument("[toy] expected " + std::string(name) + " in " +
                              std::to_string(least) + ".." + std::to_string(most) + ", got " +
                              std::to_string(value));
}

}  // namespace

void check(const ToyOptions& options) {
  if (options.experiments.empty()) throw std::invalid_argument("[toy] expected an experiment");
  for (const std::string& name : options.experiments) toy_problem(name);
  check_range("seeds", options.seeds, 1, 1000);
  check_range("steps", options.steps, 1, 1'000'000);
  check_range("width", options.width, 1, 4096);
  check_range("batch_size", options.batch_size, 4, 65536);
  check_range("contexts", options.contexts, 1, 1'000'000);
  check_range("threads", options.threads, 0, 1024);
  if (options.batch_size % 2 != 0) {
    throw std::invalid_argument("[toy] expected an even batch_size, got " +
                                std::to_string(options.batch_size));
  }
  if (!(options.learning_rate > 0) || options.learning_rate > 1) {
    throw std::invalid_argument("[toy] expected learning_rate in (0, 1], got " +
                                std::to_string(options.learning_rate));
  }
}

results::Rows run_toy(const ToyOptions& options, const base::Progress& progress) {
  check(options);
  results::Rows rows;
  std::vector<std::pair<const ToyNetwork*, int64_t>> jobs;
  for (const std::string& experiment : options.experiments) {
    for (results::Row& row : illustration(experiment)) rows.push_back(std::move(row));
    for (const ToyNetwork& network : toy_networks()) {
      for (int64_t seed = 0; network.problem == experiment && seed < options.seeds; ++seed) {
        jobs.emplace_back(&network, seed);
      }
    }
  }
  const auto count = static_cast<int64_t>(jobs.size());
  results::Rows scores(jobs.size());
  const ops::SingleThreadGuard single_thread;
  base::run_jobs(count, options.threads, count * (kStepUnits * options.steps + options.contexts),
                 progress, [&](int64_t i, base::Work& work) {
                   scores[i] = to_row(score(*jobs[i].first, jobs[i].second, options, work));
                 });
  rows.insert(rows.end(), scores.begin(), scores.end());
  return rows;
}

}  // namespace qact::toy
