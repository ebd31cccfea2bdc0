// One factory per network, each defined in the source file of its name. make() in network.cpp lists
// them all.
#pragma once

#include "qact/models/network.h"

namespace qact::models {

std::shared_ptr<Network> make_densenet(const NetworkOptions& options);
std::shared_ptr<Network> make_lenet(const NetworkOptions& options);
std::shared_ptr<Network> make_mlp(const NetworkOptions& options);
std::shared_ptr<Network> make_resnet18(const NetworkOptions& options);
std::shared_ptr<Network> make_resnet26(const NetworkOptions& options);
std::shared_ptr<Network> make_vgg16(const NetworkOptions& options);
std::shared_ptr<Network> make_wrn_40_4(const NetworkOptions& options);

}  // namespace qact::models
