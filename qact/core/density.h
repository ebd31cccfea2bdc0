// The Gaussian kernel density estimate of a weighted context, to about 1e-8: a
// one-dimensional fast Gauss transform. Values are gathered into cells one bandwidth
// wide, each kept as a short Hermite series, and every occupied cell gets the Taylor
// series of the sum around its centre. Only occupied cells are stored, so neither far
// outliers nor a tiny bandwidth cost anything.
#pragma once

#include <vector>

namespace qact::core {

class GaussSum {
 public:
  explicit GaussSum(double bandwidth) : bandwidth_(bandwidth) {}

  // Values come in ascending order. Those of infinitely many bandwidths are ignored: their density
  // is 0.
  void add(double value, double weight);
  void finish();

  double at(double value) const;

 private:
  static constexpr int kTerms = 12;
  static constexpr int kReach = 7;  // cells; beyond, exp(-x^2 / 2) < 1e-10
  struct Cell {
    double index;           // the centre is index * bandwidth
    double moment[kTerms];  // sum of w * y^a / a!, y the distance to the centre
    double taylor[kTerms];
  };

  void expand(double index, double* taylor) const;

  double bandwidth_;
  std::vector<Cell> cells_;
};

}  // namespace qact::core
