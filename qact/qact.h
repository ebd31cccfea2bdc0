// All that a program needs to use quantile activations: the modules of nn, and the operators under
// them. Link with qact::ops.
#pragma once

#include "qact/nn/activation.h"
#include "qact/nn/batch_norm.h"
#include "qact/nn/context_mode.h"
#include "qact/nn/quantile_activation.h"
#include "qact/nn/quantile_classifier.h"
#include "qact/ops/context.h"
#include "qact/ops/quantile_activation.h"
#include "qact/ops/quantile_apply.h"
#include "qact/ops/quantile_layer.h"
