// One factory per method of adaptation, each defined in the source file of its name. methods() in
// method.cpp lists them all.
#pragma once

#include "qact/adapt/method.h"

namespace qact::adapt {

std::unique_ptr<Method> make_none(models::Network& network);
std::unique_ptr<Method> make_tent(models::Network& network);

}  // namespace qact::adapt
