// What the evaluation's sections share: scores grouped into networks that may be compared, a
// name and a look for each curve, and its course over severities.
#pragma once

#include <string>
#include <vector>

#include "qact/report/chart.h"
#include "qact/results/curve.h"

namespace qact::report {

using results::kTone;
using results::Score;
using results::Setting;

// A setting with its seeds, under a name that tells it from the others of its group.
struct Curve : results::Curve {
  std::string label, colour;
  std::vector<int> dash;  // by mode of inference: batch is solid
};

// All of one dataset and one architecture.
struct Group {
  std::string dataset, model;
  std::vector<Curve> curves;
  std::vector<std::string> corruptions;  // to compare by, tone aside
  std::vector<std::string> notes;        // what was left out, or lacks some of these: sentences
  int most = 0;                          // the highest severity

  // The loss and the classifier that most curves have: what activations are compared with.
  std::string loss, classifier;

  bool is_usual(const Setting& s) const { return s.loss == loss && s.classifier == classifier; }
  // Of the usual curves of an activation in a mode, the one most like `like` in all else; nullptr
  // where there is none.
  const Curve* closest(const Setting& like, const std::string& activation,
                       const std::string& mode) const;
  // The curve that a row of diagnostics belongs to, which has no classifier and images of its own;
  // nullptr where there is none.
  const Curve* diagnosed(const results::Evaluation& row) const;
  std::string title() const { return dataset + ", " + model; }
  // A name for files and anchors: letters, digits and underscores.
  std::string slug(const std::string& chart) const;
};

// Groups in the order of the rows; curves by activation, batch statistics first.
std::vector<Group> groups(const results::Rows& rows);

// The name of the curve that a row of diagnostics belongs to, with the seed where it has several.
std::string label_of(const results::Evaluation& row, const std::vector<Group>& groups);

// A course over severities: mean, and one deviation to either side between seeds where there
// are several, else between corruptions.
struct Course {
  struct Point {
    int severity;
    double mean, deviation;
  };
  std::vector<Point> points;
  bool over_seeds = false;
};
Course course(const Curve& curve, const std::string& metric,
              const std::vector<std::string>& corruptions);

// Colour and dash of curves, with one legend for both.
Json curve_colour(const std::vector<const Curve*>& curves);
Json curve_dash(const std::vector<const Curve*>& curves);

// As people write them: qact is QAct; batch is "batch statistics".
std::string activation_name(const std::string& activation);
std::string mode_name(const Setting& setting);

std::string fixed(double value, int digits);  // "-" for what is no number

}  // namespace qact::report
