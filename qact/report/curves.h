// What the sections of an evaluation share: curves in groups that can be compared, with labels and
// colours, and the values of a curve by severity.
#pragma once

#include <string>
#include <vector>

#include "qact/report/chart.h"
#include "qact/results/curve.h"
#include "qact/results/fields.h"

namespace qact::report {

using results::kTone;
using results::Score;
using results::Setting;

inline constexpr const char *kSingle = "single", *kNotAdapted = "none";

// A setting with all its seeds. The label is unique in its group.
struct Curve : results::Curve {
  std::string label, colour;
  std::vector<int> dash;  // by mode of inference: batch is solid
};

// The fields that say which images means over `corruptions` are of: where they differ, the means
// do not compare.
std::vector<results::Field> image_fields(const Setting& setting,
                                         const std::vector<std::string>& corruptions);

// All curves of one dataset and one architecture.
struct Group {
  std::string dataset, model;
  std::vector<Curve> curves;
  std::vector<std::string> corruptions;  // by which curves are compared; without tone
  std::vector<std::string> notes;        // sentences: what was left out or is incomplete
  int max_severity = 0;

  // The loss and the classifier of most curves: activations are compared with these.
  std::string loss, classifier;

  bool is_usual(const Setting& s) const { return s.loss == loss && s.classifier == classifier; }
  // Usual, one corruption at a time and without adaptation.
  bool is_plain(const Setting& s) const {
    return is_usual(s) && s.stream == kSingle && s.adapt == kNotAdapted;
  }
  // Of the usual curves of an activation in a mode, with a method of adaptation, on the stream and
  // images of `like` and, but for running statistics, in batches of its size: the one that has most
  // in common with it; nullptr where there is none.
  const Curve* closest(const Setting& like, const std::string& activation, const std::string& mode,
                       const std::string& adapt = kNotAdapted) const;
  // The curve of a diagnostic row (t-SNE, histogram), which has no classifier and other images;
  // nullptr where there is none.
  const Curve* curve_of(const results::Evaluation& row) const;
  std::string title() const { return dataset + ", " + model; }
  // A name for files and anchors: of letters, digits and underscores.
  std::string slug(const std::string& chart) const;
};

// Groups in the order of the rows; curves by activation, batch statistics first.
std::vector<Group> groups(const results::Rows& rows);

// The label of a diagnostic row's curve, with the seed where there are several.
std::string label_of(const results::Evaluation& row, const std::vector<Group>& groups);

// A metric by severity: its mean, and the standard deviation between seeds where there are several,
// else between corruptions.
struct Series {
  struct Point {
    int severity;
    double mean, deviation;
  };
  std::vector<Point> points;
  bool over_seeds = false;
};
Series series_of(const Curve& curve, const std::string& metric,
                 const std::vector<std::string>& corruptions);

// Colour and dash of curves, with one legend for both.
Json curve_colour(const std::vector<const Curve*>& curves);
Json curve_dash(const std::vector<const Curve*>& curves);

std::string fixed(double value, int digits);  // "-" for NaN and infinity

}  // namespace qact::report
