// A first network with a quantile activation.
//
// Two clouds of points lie side by side, and the label says which of the two a point is
// from. Every batch shows them at another place: no single point can be told apart, but its
// rank among the others can.
#include <qact/qact.h>
#include <torch/torch.h>

#include <cstdio>

struct Batch {
  torch::Tensor x, label;
};

Batch draw(int64_t n) {
  const torch::Tensor place = torch::randn({1, 2}) * 4;
  const torch::Tensor label = torch::randint(2, {n});
  const torch::Tensor side = (label * 2 - 1).unsqueeze(1) * torch::tensor({0.5, 0.25});
  return {place + side + 0.15 * torch::randn({n, 2}), label};
}

torch::nn::Sequential make_network(torch::nn::AnyModule activation) {
  return torch::nn::Sequential(torch::nn::Linear(2, 32), std::move(activation),
                               torch::nn::Linear(32, 2));
}

void train(torch::nn::Sequential& network) {
  torch::optim::Adam optimizer(network->parameters(), torch::optim::AdamOptions(0.01));
  for (int step = 0; step < 200; ++step) {
    const Batch batch = draw(128);
    optimizer.zero_grad();
    torch::cross_entropy_loss(network->forward(batch.x), batch.label).backward();
    optimizer.step();
  }
}

double accuracy(torch::nn::Sequential& network) {
  torch::NoGradGuard no_grad;
  network->eval();
  double correct = 0;
  for (int i = 0; i < 50; ++i) {
    const Batch batch = draw(128);
    correct += network->forward(batch.x)
                   .argmax(1)
                   .eq(batch.label)
                   .to(torch::kDouble)
                   .mean()
                   .item<double>();
  }
  return correct / 50;
}

int main() {
  torch::manual_seed(0);
  torch::nn::Sequential relu = make_network(torch::nn::AnyModule(torch::nn::ReLU()));
  train(relu);
  std::printf("ReLU:                                  %.3f\n", accuracy(relu));

  torch::nn::Sequential quantile =
      make_network(torch::nn::AnyModule(qact::nn::QuantileActivation(32)));
  train(quantile);  // in training, a value is ranked in its batch

  // By default, eval() ranks in the running context of training, as BatchNorm uses
  // its running statistics. These batches differ from each other: rank in each of them.
  std::printf("QAct, ranked in what training saw:     %.3f\n", accuracy(quantile));
  qact::nn::set_context_mode(*quantile, qact::nn::ContextMode::batch);
  std::printf("QAct, ranked in its own batch:         %.3f\n", accuracy(quantile));
}
