#include <qact/corrupt/corrupt.h>
#include <qact/data/dataset.h>
#include <qact/data/loader.h>
#include <qact/eval/evaluate.h>
#include <qact/eval/predict.h>
#include <qact/losses/loss.h>
#include <qact/metrics/calibration.h>
#include <qact/metrics/retrieval.h>
#include <qact/models/network.h>
#include <qact/qact.h>
#include <qact/report/page.h>
#include <qact/train/train.h>

#include <cstdio>

int main() {
  const auto network = qact::models::make("lenet", {.channels = 1, .image_size = 28});
  std::printf("%s, %zu networks\n", qact::data::find_dataset("mnist-small").name.c_str(),
              qact::models::names().size());
  return network->features() > 0 ? 0 : 1;
}
