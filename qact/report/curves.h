// What the evaluation's sections share: scores grouped into networks that may be compared, a
// name and a look for each curve, and its course over severities.
#pragma once

#include <string>
#include <vector>

#include "qact/report/chart.h"
#include "qact/results/evaluation.h"

namespace qact::report {

using results::kTone;
using results::Score;
using results::Setting;

// A setting with its seeds, under a name that tells it from the others of its group.
struct Curve {
  Setting setting;
  std::string label, colour;
  std::vector<int> dash;  // by mode of inference: batch is solid
  std::vector<Score> scores;

  // Mean over seeds and `distortions` at a severity; NaN where there is nothing.
  double mean(const std::string& metric, int severity,
              const std::vector<std::string>& distortions) const;
};

// All of one dataset and one architecture.
struct Group {
  std::string dataset, model;
  std::vector<Curve> curves;
  std::vector<std::string> distortions;  // that every curve was shown, tone aside
  int most = 0;                          // the highest severity

  // The loss and the classifier that most curves have: what activations are compared with.
  std::string loss, classifier;

  bool is_usual(const Setting& s) const { return s.loss == loss && s.classifier == classifier; }
  // The first usual curve of an activation in a mode; nullptr where there is none.
  const Curve* first(const std::string& activation, const std::string& mode) const;
  std::string title() const { return dataset + ", " + model; }
  // A name for files and anchors: letters, digits and underscores.
  std::string slug(const std::string& chart) const;
};

// Whether `distortion` at this severity counts for a mean over `distortions`: undistorted images
// always do.
bool is_among(const std::string& distortion, int severity,
              const std::vector<std::string>& distortions);

// Groups in the order of the rows; curves by activation, batch statistics first.
std::vector<Group> groups(const results::Rows& rows);

// A course over severities: mean, and one deviation to either side between seeds where there
// are several, else between distortions.
struct Course {
  struct Point {
    int severity;
    double mean, deviation;
  };
  std::vector<Point> points;
  bool over_seeds = false;
};
// `metric` is a key of rows, or "drop": accuracy at severity 0 less that at the point.
Course course(const Curve& curve, const std::string& metric,
              const std::vector<std::string>& distortions);

// Colour and dash of curves, with one legend for both.
Json curve_colour(const std::vector<const Curve*>& curves);
Json curve_dash(const std::vector<const Curve*>& curves);

// As people write them: qact is QAct; batch is "batch statistics".
std::string activation_name(const std::string& activation);
std::string mode_name(const Setting& setting);

std::string fixed(double value, int digits);  // "-" for what is no number

}  // namespace qact::report
