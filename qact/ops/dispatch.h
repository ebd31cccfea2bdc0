// Calls through torch's dispatcher, where devices, autograd and tracing have their say.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace qact::ops {

// The operator of that name. Looking it up takes a lock: keep it in a static.
template <class Function>
c10::TypedOperatorHandle<Function> registered(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Function>();
}

}  // namespace qact::ops
