// One SIMD level's tables, in the namespace QACT_SIMD_NAMESPACE. They are all that leaves
// the translation unit: anything else compiled for its target stays inside.
#include "qact/core/cpu/bin_kernels.h"
#include "qact/core/cpu/code_kernels.h"
#include "qact/core/cpu/exact_kernels.h"
#include "qact/core/cpu/grad_kernels.h"
#include "qact/core/cpu/move_kernels.h"
#include "qact/core/cpu/rank_kernels.h"
#include "qact/core/cpu/short_grad_kernels.h"
#include "qact/core/cpu/short_kernels.h"
#include "qact/core/cpu/strip_kernels.h"
#include "qact/core/cpu/table_kernels.h"

namespace qact::core::cpu::QACT_SIMD_NAMESPACE {

template <class Real>
constexpr TensorKernels<Real> kTensorTable = {
    pack<Real>,          unpack<Real>,         moments<Real>,     affine<Real>,
    whole_sums<Real>,    find_bins<Real>,      count_bins<Real>,  marked_places<Real>,
    output_table<Real>,  layer_output<Real>,   search<Real>,      apply<Real>,
    apply_grad<Real>,    grad_sums<Real>,      grad_output<Real>, grad_table<Real>,
    short_forward<Real>, short_backward<Real>,
};
extern const TensorKernels<float> float_kernels;
extern const TensorKernels<double> double_kernels;
extern const TableKernels table_kernels;
const TensorKernels<float> float_kernels = kTensorTable<float>;
const TensorKernels<double> double_kernels = kTensorTable<double>;
const TableKernels table_kernels = {code_bytes,     cell_ends,  bin_codes,      code_inputs,
                                    code_densities, level_sums, density_sums,   grad_means,
                                    prefix_sums,    bin_levels, heavier,        cumulative_at,
                                    cell_weights,   convolve,   context_counts, blend_short};

}  // namespace qact::core::cpu::QACT_SIMD_NAMESPACE
