#include "qact/core/cpu/code_counts.h"

#include <algorithm>
#include <cstring>

#include "qact/core/mutant.h"

namespace qact::core::cpu {

void CodeCounts::clear(double farthest) {
  farthest_ = farthest;
  runs_ = {};
  std::fill_n(xhat_, kCodes, 0.0);
}

void CodeCounts::fill(const TableKernels& tables, const DensityGrid& grid, double weight,
                      double bias, double n, CodeTable& table) const {
  set_inputs(tables, table);
  tables.code_densities(table.input, grid.along(weight * table.input_unit, bias), table.density);
  add_up(tables, n, table);
}

void CodeCounts::fill(const TableKernels& tables, const double* density_sum, double n,
                      CodeTable& table) const {
  set_inputs(tables, table);
  for (int c = 0; c < kCodes; ++c) {
    table.density[c] = static_cast<float>(runs_.n[c] > 0 ? density_sum[c] / runs_.n[c] : 0);
  }
  add_up(tables, n, table);
}

void CodeCounts::set_inputs(const TableKernels& tables, CodeTable& table) const {
  constexpr double kUnits = 32767;
  table.input_unit = farthest_ / kUnits;
  tables.code_inputs(runs_.n, xhat_, table.input_unit, table.input);
}

void CodeCounts::add_up(const TableKernels& tables, double n, CodeTable& table) const {
  std::memcpy(table.level, runs_.level, sizeof(runs_.level));
  DensitySums sums;
  tables.density_sums(runs_.n, table, sums);
  table.f = sums.f / n;
  table.f_k = sums.f_k / n;
  table.f_xhat = table.input_unit * sums.f_input / n;
  table.f_k_xhat = QACT_MUTANT("table_f_k_xhat") ? 0 : table.input_unit * sums.f_k_input / n;
}

}  // namespace qact::core::cpu
