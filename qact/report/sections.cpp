#include "qact/report/sections.h"

namespace qact::report {

std::span<const Section> sections() {
  static const Section all[] = {
      {"summary", "In short",
       "A network with running statistics uses those of training at test time: the plain network, "
       "and what single images get. With batch statistics it normalises, or ranks, within the test "
       "batch. For a ReLU network that is BatchNorm adaptation: the fair baseline, since it sees "
       "the "
       "same context as QAct and differs only in the activation.",
       summary},
      {"severity", "Accuracy, calibration and retrieval by severity",
       "Each line is a mean over corruptions. Click an entry of a legend to see it alone, with "
       "shift held to add others; hover over a point for its values.",
       severities},
      {"heat", "Every corruption", "", heat_maps},
      {"drops", "Drop in accuracy from severity i to j", "", drop_tables},
      {"tone", "Beyond the benchmark: random tone curves",
       "Every 500 consecutive images pass through a random increasing tone curve of their own, up "
       "to a gamma of 4 or 1/4 at severity 5. It keeps the order of the pixels' values and moves "
       "their mean and variance: the shift that a rank is made for. It is no part of the published "
       "benchmarks.",
       tone},
      {"reliability", "Do probabilities mean what they say?",
       "Of the images that a network gives a probability of 0.7, seven in ten should be right: the "
       "dashed line. Below it a network claims too much. Bins of equal width, all corruptions "
       "together.",
       reliability},
      {"embeddings", "The embeddings in a plane",
       "What enters the classifier, by exact t-SNE of all severities in one plane, so that "
       "positions compare between panels: classes that stay apart and in place as the corruption "
       "grows are robust. Neighbourhoods mean something here, sizes and distances of clusters do "
       "not.",
       embeddings},
      {"distributions", "What a layer sees and says",
       "Histograms of what an activation is given and what it makes of it, as the corruption "
       "grows. A rank within the batch has the same distribution whatever is done to the batch; a "
       "fixed function passes every shift on.",
       distributions},
      {"contact-sheets", "What the networks were shown", "", contact_sheets},
      {"circle", "Circle: only the context tells", "", toy_circle},
      {"monotone", "Monotone: only ranks survive", "", toy_monotone},
      {"provenance", "How this was made", "", provenance},
  };
  return all;
}

}  // namespace qact::report
